import { maxDigits } from './bounds.ts'
import { CalculationError } from './calculation-error.ts'
import { digitsOf, magnitude, type Rational, rational } from './rational.ts'

/** `base` to a whole `exponent`. Throws `CalculationError` for another exponent, 0 to a negative one, and too many digits. */
export function power(base: Rational, exponent: Rational, at: number): Rational {
  if (exponent.denominator !== 1n) {
    throw new CalculationError(at, 'the exponent is not a whole number; for a square root use sqrt(x)')
  }
  const times = magnitude(exponent.numerator)
  const exact = base.exact && exponent.exact
  if (base.numerator === 0n && exponent.numerator < 0n) throw new CalculationError(at, 'division by zero')
  // Only 0, 1 and -1 stay small under any exponent.
  if (base.denominator === 1n && magnitude(base.numerator) < 2n) {
    if (times === 0n) return rational(1n, 1n, exact)
    return rational(times % 2n === 0n ? magnitude(base.numerator) : base.numerator, 1n, exact)
  }
  const digits = Math.max(digitsOf(base.numerator), digitsOf(base.denominator)) - 1
  // A number of n + 1 digits is at least 10^n, and any other at least 2.
  if (times * BigInt(digits) > maxDigits || times > maxDigits * 4) {
    throw new CalculationError(at, `the result needs more than ${maxDigits} digits`)
  }
  const [above, below] = [base.numerator ** times, base.denominator ** times]
  return exponent.numerator < 0n ? rational(below, above, exact) : rational(above, below, exact)
}
