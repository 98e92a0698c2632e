import { maxLength } from './bounds.ts'
import { CalculationError } from './calculation-error.ts'
import { evaluate } from './evaluate.ts'
import { parse } from './expression.ts'
import { numberText } from './number-text.ts'
import { tokensOf } from './token.ts'

/** The value of an expression, as text. Throws `CalculationError` for one that has none. */
export function calculate(expression: string): string {
  if (expression.length > maxLength) {
    throw new CalculationError(maxLength, `an expression has at most ${maxLength} characters`)
  }
  return numberText(evaluate(parse(tokensOf(expression))))
}
