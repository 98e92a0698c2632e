/**
 * A fraction in lowest terms; the denominator is positive. `exact` is false once a root that has no finite digits
 * took part.
 */
export interface Rational {
  readonly numerator: bigint
  readonly denominator: bigint
  readonly exact: boolean
}

/** A fraction of two whole numbers, the second of which is not 0, in lowest terms. */
export function rational(numerator: bigint, denominator = 1n, exact = true): Rational {
  const divisor = commonDivisor(magnitude(numerator), magnitude(denominator))
  const signed = denominator < 0n ? -divisor : divisor
  return { numerator: numerator / signed, denominator: denominator / signed, exact }
}

/** The sum of two numbers. */
export function add(a: Rational, b: Rational): Rational {
  const numerator = a.numerator * b.denominator + b.numerator * a.denominator
  return rational(numerator, a.denominator * b.denominator, a.exact && b.exact)
}

/** The same number with the other sign. */
export function negate(a: Rational): Rational {
  return { ...a, numerator: -a.numerator }
}

/** The product of two numbers. */
export function multiply(a: Rational, b: Rational): Rational {
  return rational(a.numerator * b.numerator, a.denominator * b.denominator, a.exact && b.exact)
}

/** The quotient of two numbers, the second of which is not 0. */
export function divide(a: Rational, b: Rational): Rational {
  return rational(a.numerator * b.denominator, a.denominator * b.numerator, a.exact && b.exact)
}

/** The greatest whole number that is not above. */
export function floor({ numerator, denominator, exact }: Rational): Rational {
  const truncated = numerator / denominator
  const below = numerator < 0n && denominator !== 1n
  return { numerator: below ? truncated - 1n : truncated, denominator: 1n, exact }
}

/** The whole number towards 0. */
export function truncate({ numerator, denominator, exact }: Rational): Rational {
  return { numerator: numerator / denominator, denominator: 1n, exact }
}

/** Whether `a` is less than `b`. */
export function isBelow(a: Rational, b: Rational): boolean {
  return a.numerator * b.denominator < b.numerator * a.denominator
}

/** A whole number without its sign. */
export function magnitude(value: bigint): bigint {
  return value < 0n ? -value : value
}

/** How many decimal digits a whole number has. */
export function digitsOf(value: bigint): number {
  return magnitude(value).toString().length
}

/** The whole part of the square root of a whole number that is not negative. */
export function wholeRoot(value: bigint): bigint {
  if (value < 2n) return value
  // Newton's method from above: falls until it is the root.
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + value / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

function commonDivisor(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b]
  return a
}
