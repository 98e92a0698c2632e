import { maxDigits } from './bounds.ts'
import { CalculationError } from './calculation-error.ts'
import {
  add,
  digitsOf,
  divide,
  floor,
  isBelow,
  magnitude,
  multiply,
  negate,
  type Rational,
  rational,
  wholeRoot,
} from './rational.ts'

/** A function of numbers. `of` is called with as many as it takes, and the place that an error should name. */
export interface CalculatorFunction {
  readonly inputsMin: number
  readonly maxInputs: number
  readonly of: (inputs: readonly Rational[], at: number) => Rational
}

const zero = rational(0n)
const half = rational(1n, 2n)
/** Digits of a root that has no finite number of them. */
const rootDigits = 60

/** Every function by name. */
export const functions: Readonly<Record<string, CalculatorFunction>> = {
  abs: one(absolute),
  ceil: one((value) => negate(floor(negate(value)))),
  floor: one(floor),
  max: many((a, b) => (isBelow(a, b) ? b : a)),
  min: many((a, b) => (isBelow(b, a) ? b : a)),
  round: { inputsMin: 1, maxInputs: 2, of: ([value = zero, places = zero], at) => round(value, places, at) },
  sqrt: one(squareRoot),
  sum: many(add),
}

function one(of: (value: Rational, at: number) => Rational): CalculatorFunction {
  return { inputsMin: 1, maxInputs: 1, of: ([value = zero], at) => of(value, at) }
}

function many(of: (a: Rational, b: Rational) => Rational): CalculatorFunction {
  return { inputsMin: 1, maxInputs: Infinity, of: (inputs) => inputs.reduce(of) }
}

function absolute(value: Rational): Rational {
  return { ...value, numerator: magnitude(value.numerator) }
}

/** Rounds to so many places after the point (before it, if negative); halves go away from 0. */
function round(value: Rational, places: Rational, at: number): Rational {
  if (places.denominator !== 1n || magnitude(places.numerator) > maxDigits) {
    throw new CalculationError(at, `round takes whole places from -${maxDigits} to ${maxDigits}`)
  }
  const shift = 10n ** magnitude(places.numerator)
  const scale = places.numerator < 0n ? rational(1n, shift) : rational(shift)
  const rounded = divide(floor(add(multiply(absolute(value), scale), half)), scale)
  return value.numerator < 0n ? negate(rounded) : rounded
}

/** Exact where the root is a fraction, else to 60 digits and marked as inexact. */
function squareRoot({ numerator, denominator, exact }: Rational, at: number): Rational {
  if (numerator < 0n) throw new CalculationError(at, 'a negative number has no square root')
  const [above, below] = [wholeRoot(numerator), wholeRoot(denominator)]
  if (above * above === numerator && below * below === denominator) return rational(above, below, exact)
  const wholeDigits = Math.ceil((digitsOf(numerator) - digitsOf(denominator)) / 2)
  const shift = BigInt(Math.max(0, rootDigits - wholeDigits))
  return rational(wholeRoot((numerator * 100n ** shift) / denominator), 10n ** shift, false)
}
