import { getOwn } from '@tallystick/core/kit'
import { maxDigits } from './bounds.ts'
import { CalculationError } from './calculation-error.ts'
import type { Expression, Operator } from './expression.ts'
import { functions } from './functions.ts'
import { power } from './power.ts'
import { add, divide, magnitude, multiply, negate, type Rational, rational, truncate } from './rational.ts'

const bound = 10n ** BigInt(maxDigits)

/** The value of an expression. Throws `CalculationError` where it has none, or one of too many digits. */
export function evaluate(expression: Expression): Rational {
  const { kind, at } = expression
  if (kind === 'number') return numberOf(expression.text, at)
  if (kind === 'negated') return negate(evaluate(expression.operand))
  if (kind === 'call') return bounded(call(expression.name, expression.inputs.map(evaluate), at), at)
  return bounded(operate(expression.operator, evaluate(expression.left), evaluate(expression.right), at), at)
}

function operate(operator: Operator, left: Rational, right: Rational, at: number): Rational {
  switch (operator) {
    case '+':
      return add(left, right)
    case '-':
      return add(left, negate(right))
    case '*':
      return multiply(left, right)
    case '/':
      return divide(left, notZero(right, at))
    case '%':
      return add(left, negate(multiply(truncate(divide(left, notZero(right, at))), right)))
    case '^':
      return power(left, right, at)
  }
}

function call(name: string, inputs: readonly Rational[], at: number): Rational {
  const called = getOwn(functions, name)
  if (!called) {
    throw new CalculationError(
      at,
      `there is no function ${name}; there are ${Object.keys(functions).join(', ')}`,
    )
  }
  const { inputsMin, maxInputs } = called
  // A call is parsed with one input at least.
  if (inputs.length > maxInputs) {
    const wanted = maxInputs === inputsMin ? `${inputsMin}` : `${inputsMin} or ${maxInputs}`
    throw new CalculationError(at, `${name} takes ${wanted} numbers, not ${inputs.length}`)
  }
  return called.of(inputs, at)
}

function numberOf(text: string, at: number): Rational {
  const [, whole = '', places = '', exponent = '0'] =
    // Every token of a number has this form.
    /^(\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text.replaceAll('_', '')) as RegExpExecArray
  const scale = Number(exponent) - places.length
  if (Math.abs(scale) > maxDigits) throw tooLarge(at)
  const above = BigInt(whole + places) * 10n ** BigInt(Math.max(0, scale))
  return bounded(rational(above, 10n ** BigInt(Math.max(0, -scale))), at)
}

function notZero(value: Rational, at: number): Rational {
  if (value.numerator === 0n) throw new CalculationError(at, 'division by zero')
  return value
}

function bounded(value: Rational, at: number): Rational {
  if (magnitude(value.numerator) >= bound || value.denominator >= bound) throw tooLarge(at)
  return value
}

function tooLarge(at: number): CalculationError {
  return new CalculationError(at, `the result needs more than ${maxDigits} digits`)
}
