import { CalculationError } from './calculation-error.ts'

/** A word of an expression. `at` is the place of its first character, from 0. */
export type Token =
  | { readonly kind: 'number'; readonly text: string; readonly at: number }
  | { readonly kind: 'name'; readonly text: string; readonly at: number }
  | { readonly kind: 'sign'; readonly text: string; readonly at: number }
  | { readonly kind: 'end'; readonly text: ''; readonly at: number }

const number = /(?:\d+(?:_\d+)*)?(?:\.\d+(?:_\d+)*)?(?:(?<=\d)[eE][+-]?\d+)?/y
const name = /[A-Za-z][A-Za-z0-9]*/y
const signs = '+-*/%^(),'

/** Signs that models write as well, and what they mean here. */
const aliases: Readonly<Record<string, string>> = { '×': '*', '·': '*', '÷': '/', '−': '-' }

/** Splits an expression into tokens; the last is `end`. Throws `CalculationError` for a character that has no place. */
export function tokensOf(expression: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < expression.length) {
    const token = tokenAt(expression, at)
    if (token) tokens.push(token)
    at += token ? lengthOf(expression, token) : 1
  }
  return [...tokens, { kind: 'end', text: '', at: expression.length }]
}

function tokenAt(expression: string, at: number): Token | undefined {
  const character = String.fromCodePoint(expression.codePointAt(at) ?? 0)
  if (/\s/.test(character)) return undefined
  const digits = match(number, expression, at)
  if (digits !== '') return { kind: 'number', text: numberText(digits, at), at }
  const word = match(name, expression, at)
  if (word !== '') return { kind: 'name', text: word, at }
  if (expression.startsWith('**', at)) return { kind: 'sign', text: '^', at }
  const sign = aliases[character] ?? character
  if (signs.includes(sign)) return { kind: 'sign', text: sign, at }
  throw new CalculationError(
    at,
    `"${character}" has no meaning here; use numbers, + - * / % ^ ( ) and functions`,
  )
}

function match(pattern: RegExp, expression: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(expression)?.[0] ?? ''
}

/** Leading zeros are refused because they are what "1,000" leaves after its comma. */
function numberText(digits: string, at: number): string {
  if (!/^0[\d_]/.test(digits)) return digits
  throw new CalculationError(at, `${digits} starts with 0; write thousands without a comma, as 1000 or 1_000`)
}

function lengthOf(expression: string, { text, at }: Token): number {
  return expression.startsWith('**', at) ? 2 : text.length
}
