import { maxDepth } from './bounds.ts'
import { CalculationError } from './calculation-error.ts'
import type { Token } from './token.ts'

/** An operator between two expressions. */
export type Operator = '+' | '-' | '*' | '/' | '%' | '^'

/** A parsed expression. `at` is the place of the character that an error about it should name. */
export type Expression =
  | { readonly kind: 'number'; readonly text: string; readonly at: number }
  | { readonly kind: 'negated'; readonly operand: Expression; readonly at: number }
  | {
      readonly kind: 'operation'
      readonly operator: Operator
      readonly left: Expression
      readonly right: Expression
      readonly at: number
    }
  | {
      readonly kind: 'call'
      readonly name: string
      readonly inputs: readonly Expression[]
      readonly at: number
    }

/**
 * How strongly an operator binds its left and right operand: the right one begins with those operators that bind their
 * left at least as strongly. So 2^3^2 is 2^(3^2), but 8-3-2 is (8-3)-2. A sign in front binds as a power does, so -2^2 is
 * -(2^2).
 */
const binding: Readonly<Record<Operator, { readonly left: number; readonly right: number }>> = {
  '+': { left: 1, right: 2 },
  '-': { left: 1, right: 2 },
  '*': { left: 2, right: 3 },
  '/': { left: 2, right: 3 },
  '%': { left: 2, right: 3 },
  '^': { left: 3, right: 3 },
}
const signBinding = 3

/** Parses tokens by operator precedence (Pratt's method). Throws `CalculationError` at the first that has no place. */
export function parse(tokens: readonly Token[]): Expression {
  let position = 0
  // Nothing is read after the end, which no rule takes.
  const peek = (): Token => tokens[position] as Token
  const next = (): Token => {
    const token = peek()
    position++
    return token
  }
  const isSign = (text: string): boolean => peek().text === text
  const expect = (text: string, opened: number): void => {
    if (!isSign(text)) throw unexpected(peek(), `"${text}" for the "(" at character ${opened + 1}`)
    next()
  }

  const expression = (bindingMin: number, depth: number): Expression => {
    if (depth > maxDepth) throw new CalculationError(peek().at, `nested deeper than ${maxDepth} levels`)
    let left = operand(depth)
    for (;;) {
      const { kind, text, at } = peek()
      const operator = kind === 'sign' && text in binding ? (text as Operator) : undefined
      if (!operator || binding[operator].left < bindingMin) return left
      next()
      left = { kind: 'operation', operator, left, right: expression(binding[operator].right, depth + 1), at }
    }
  }

  const operand = (depth: number): Expression => {
    const token = next()
    const { kind, text, at } = token
    if (kind === 'number') return { kind, text, at }
    if (kind === 'name') return call(text, at, depth)
    if (text === '-') return { kind: 'negated', operand: expression(signBinding, depth + 1), at }
    if (text === '+') return expression(signBinding, depth + 1)
    if (text !== '(') throw unexpected(token, 'a number, a function or "("')
    const inner = expression(0, depth + 1)
    expect(')', at)
    return inner
  }

  const call = (name: string, at: number, depth: number): Expression => {
    if (!isSign('('))
      throw unexpected(peek(), `"(" after ${name}: names are functions, there are no variables`)
    const opened = next().at
    const inputs = [expression(0, depth + 1)]
    while (isSign(',')) {
      next()
      inputs.push(expression(0, depth + 1))
    }
    expect(')', opened)
    return { kind: 'call', name, inputs, at }
  }

  const whole = expression(0, 0)
  if (peek().kind !== 'end') throw unexpected(peek(), 'an operator or the end')
  return whole
}

function unexpected({ kind, text, at }: Token, wanted: string): CalculationError {
  const found = kind === 'end' ? 'the end' : `"${text}"`
  const hint = text === ',' ? '; write thousands without a comma, as 1000 or 1_000' : ''
  return new CalculationError(at, `expected ${wanted}, found ${found}${hint}`)
}
