import { digitsOf, magnitude, type Rational } from './rational.ts'

/** Places after the point up to which an exact decimal is written out. */
const maxPlaces = 100
/** Digits of a rounded number. */
const roundedDigits = 30
/** Characters up to which the exact fraction is named beside a rounded number. */
const maxFractionCharacters = 40

/**
 * A number as a model reads it: whole numbers and finite decimals in full, as in `0.3`; what has no end, or too many
 * places, rounded to 30 digits and marked: `0.333333333333333333333333333333 (rounded; exactly 1/3)`.
 */
export function numberText(value: Rational): string {
  const { numerator, denominator, exact } = value
  const places = placesOf(denominator)
  const sign = numerator < 0n ? '-' : ''
  if (exact && places !== undefined && places <= maxPlaces) {
    const digits = (magnitude(numerator) * 10n ** BigInt(places)) / denominator
    return sign + withPoint(digits.toString(), places)
  }
  const fraction = `${numerator}/${denominator}`
  const exactly = exact && fraction.length <= maxFractionCharacters ? `; exactly ${fraction}` : ''
  return `${sign}${rounded(magnitude(numerator), denominator)} (rounded${exactly})`
}

/** How many places a fraction with this denominator has after the point; `undefined` when it never ends. */
function placesOf(denominator: bigint): number | undefined {
  let rest = denominator
  let [twos, fives] = [0, 0]
  for (; rest % 2n === 0n; rest /= 2n) twos++
  for (; rest % 5n === 0n; rest /= 5n) fives++
  return rest === 1n ? Math.max(twos, fives) : undefined
}

function withPoint(digits: string, places: number): string {
  if (places === 0) return digits
  const padded = digits.padStart(places + 1, '0')
  return `${padded.slice(0, -places)}.${padded.slice(-places)}`
}

function rounded(numerator: bigint, denominator: bigint): string {
  if (numerator === 0n) return '0'
  // The power of ten of the first digit: 10^exponent <= value < 10^(exponent + 1).
  let exponent = digitsOf(numerator) - digitsOf(denominator)
  if (scaled(numerator, -exponent) < scaled(denominator, exponent)) exponent--
  const shift = roundedDigits - 1 - exponent
  const divisor = scaled(denominator, -shift)
  let digits = ((2n * scaled(numerator, shift) + divisor) / (2n * divisor)).toString()
  if (digits.length > roundedDigits) exponent++
  while (digits.endsWith('0')) digits = digits.slice(0, -1)
  if (exponent < -7 || exponent >= roundedDigits) {
    return `${withPoint(digits, digits.length - 1)}e${exponent < 0 ? '' : '+'}${exponent}`
  }
  const whole = digits.padEnd(exponent + 1, '0')
  return withPoint(whole, whole.length - exponent - 1)
}

/** Times a power of ten; negative powers leave it as it is, since they are put on the other side. */
function scaled(value: bigint, powerOfTen: number): bigint {
  return value * 10n ** BigInt(Math.max(0, powerOfTen))
}
