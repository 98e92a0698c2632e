import type { Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '../define/define-tool.ts'
import { calculate, maxLength } from './expression.ts'

/** How the tool presents itself to the model; both have a default. */
export interface CalculatorOptions {
  readonly name?: string | undefined
  readonly description?: string | undefined
}

/**
 * A calculator for models: exact decimal arithmetic, so that 0.1 + 0.2 is 0.3 and 1 / 3 * 3 is 1. The answer is the
 * number as text; a number with too many digits is rounded, and marked as rounded. Nothing is evaluated as code, and
 * length, nesting and digits are bounded.
 */
export function calculator(options: CalculatorOptions = {}): Tool {
  requireOptions('calculator', calculatorOptions, options)
  return defineTool({
    name: options.name ?? 'calculator',
    description:
      options.description ??
      'Calculates exactly, with decimals of any size. Use it for every calculation beyond the trivial, ' +
        'instead of calculating yourself.',
    input,
    effect: 'read',
    execute: ({ expression }) => calculate(expression as string),
  })
}

const { fields, filledText, maybe } = option

const calculatorOptions = fields<CalculatorOptions>({
  name: maybe(filledText),
  description: maybe(filledText),
})

const input: JsonObject = {
  type: 'object',
  required: ['expression'],
  additionalProperties: false,
  properties: {
    expression: {
      type: 'string',
      minLength: 1,
      maxLength: maxLength,
      description:
        'For example (1_250 * 1.19 - 3) / 4. Operators + - * / ^ (whole exponents), % is the remainder, with the ' +
        'sign of the dividend. Functions: abs(x), ceil(x), floor(x), max(x, …), min(x, …), round(x, places), ' +
        'sqrt(x), sum(x, …). round takes halves away from zero. No thousands separators but _, no units, no variables.',
    },
  },
}
