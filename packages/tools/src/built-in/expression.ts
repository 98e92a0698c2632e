import { getOwn } from '@tallystick/core/internal'

/** Characters of an expression. */
export const maxLength = 1_000
/** How deep parentheses, calls, signs and powers may nest. */
const maxDepth = 64
/** Digits of a numerator or denominator: what keeps every step in well under a millisecond. */
const maxDigits = 500

/** An expression that has no value. The message names the character, from 1. */
export class CalculationError extends Error {
  constructor(at: number, problem: string) {
    super(`At character ${at + 1}: ${problem}.`)
    this.name = 'CalculationError'
  }
}

/** The value of an expression, as text. Throws `CalculationError` for one that has none. */
export function calculate(expression: string): string {
  if (expression.length > maxLength) {
    throw new CalculationError(maxLength, `an expression has at most ${maxLength} characters`)
  }
  return writeNumber(evaluate(parse(readTokens(expression))))
}

/** The value of an expression. Throws `CalculationError` where it has none, or one of too many digits. */
function evaluate(expression: Expression): Rational {
  const { kind, at } = expression
  if (kind === 'number') return readNumber(expression.text, at)
  if (kind === 'negated') return negate(evaluate(expression.operand))
  if (kind === 'call') return requireBounded(call(expression.name, expression.inputs.map(evaluate), at), at)
  return requireBounded(
    applyOperator(expression.operator, evaluate(expression.left), evaluate(expression.right), at),
    at,
  )
}

function applyOperator(operator: Operator, left: Rational, right: Rational, at: number): Rational {
  switch (operator) {
    case '+':
      return add(left, right)
    case '-':
      return add(left, negate(right))
    case '*':
      return multiply(left, right)
    case '/':
      return divide(left, requireNonZero(right, at))
    case '%':
      return add(left, negate(multiply(truncate(divide(left, requireNonZero(right, at))), right)))
    case '^':
      return raise(left, right, at)
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

function readNumber(text: string, at: number): Rational {
  const [, whole = '', places = '', exponent = '0'] =
    // Every token of a number has this form.
    /^(\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text.replaceAll('_', '')) as RegExpExecArray
  const scale = Number(exponent) - places.length
  if (Math.abs(scale) > maxDigits) throw createTooLarge(at)
  const above = BigInt(whole + places) * 10n ** BigInt(Math.max(0, scale))
  return requireBounded(createRational(above, 10n ** BigInt(Math.max(0, -scale))), at)
}

function requireNonZero(value: Rational, at: number): Rational {
  if (value.numerator === 0n) throw new CalculationError(at, 'division by zero')
  return value
}

function requireBounded(value: Rational, at: number): Rational {
  if (takeMagnitude(value.numerator) >= bound || value.denominator >= bound) throw createTooLarge(at)
  return value
}

function createTooLarge(at: number): CalculationError {
  return new CalculationError(at, `the result needs more than ${maxDigits} digits`)
}

/**
 * A fraction in lowest terms; the denominator is positive. `exact` is false once a root that has no finite digits
 * took part.
 */
interface Rational {
  readonly numerator: bigint
  readonly denominator: bigint
  readonly exact: boolean
}

/** A fraction of two whole numbers, the second of which is not 0, in lowest terms. */
function createRational(numerator: bigint, denominator = 1n, exact = true): Rational {
  const divisor = findCommonDivisor(takeMagnitude(numerator), takeMagnitude(denominator))
  const signed = denominator < 0n ? -divisor : divisor
  return { numerator: numerator / signed, denominator: denominator / signed, exact }
}

function add(a: Rational, b: Rational): Rational {
  const numerator = a.numerator * b.denominator + b.numerator * a.denominator
  return createRational(numerator, a.denominator * b.denominator, a.exact && b.exact)
}

function negate(a: Rational): Rational {
  return { ...a, numerator: -a.numerator }
}

function multiply(a: Rational, b: Rational): Rational {
  return createRational(a.numerator * b.numerator, a.denominator * b.denominator, a.exact && b.exact)
}

/** The quotient of two numbers, the second of which is not 0. */
function divide(a: Rational, b: Rational): Rational {
  return createRational(a.numerator * b.denominator, a.denominator * b.numerator, a.exact && b.exact)
}

function roundDown({ numerator, denominator, exact }: Rational): Rational {
  const truncated = numerator / denominator
  const below = numerator < 0n && denominator !== 1n
  return { numerator: below ? truncated - 1n : truncated, denominator: 1n, exact }
}

function truncate({ numerator, denominator, exact }: Rational): Rational {
  return { numerator: numerator / denominator, denominator: 1n, exact }
}

function isBelow(a: Rational, b: Rational): boolean {
  return a.numerator * b.denominator < b.numerator * a.denominator
}

function takeMagnitude(value: bigint): bigint {
  return value < 0n ? -value : value
}

function countDigits(value: bigint): number {
  return takeMagnitude(value).toString().length
}

/** The whole part of the square root of a whole number that is not negative. */
function findWholeRoot(value: bigint): bigint {
  if (value < 2n) return value
  // Newton's method from above: falls until it is the root.
  let root = 1n << BigInt((value.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + value / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

function findCommonDivisor(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b]
  return a
}

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
function writeNumber(value: Rational): string {
  const { numerator, denominator, exact } = value
  const places = countPlaces(denominator)
  const sign = numerator < 0n ? '-' : ''
  if (exact && places !== undefined && places <= maxPlaces) {
    const digits = (takeMagnitude(numerator) * 10n ** BigInt(places)) / denominator
    return sign + withPoint(digits.toString(), places)
  }
  const fraction = `${numerator}/${denominator}`
  const exactly = exact && fraction.length <= maxFractionCharacters ? `; exactly ${fraction}` : ''
  return `${sign}${writeRounded(takeMagnitude(numerator), denominator)} (rounded${exactly})`
}

/** How many places a fraction with this denominator has after the point; `undefined` when it never ends. */
function countPlaces(denominator: bigint): number | undefined {
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

function writeRounded(numerator: bigint, denominator: bigint): string {
  if (numerator === 0n) return '0'
  // The power of ten of the first digit: 10^exponent <= value < 10^(exponent + 1).
  let exponent = countDigits(numerator) - countDigits(denominator)
  if (scaleUp(numerator, -exponent) < scaleUp(denominator, exponent)) exponent--
  const shift = roundedDigits - 1 - exponent
  const divisor = scaleUp(denominator, -shift)
  let digits = ((2n * scaleUp(numerator, shift) + divisor) / (2n * divisor)).toString()
  if (digits.length > roundedDigits) exponent++
  while (digits.endsWith('0')) digits = digits.slice(0, -1)
  if (exponent < -7 || exponent >= roundedDigits) {
    return `${withPoint(digits, digits.length - 1)}e${exponent < 0 ? '' : '+'}${exponent}`
  }
  const whole = digits.padEnd(exponent + 1, '0')
  return withPoint(whole, whole.length - exponent - 1)
}

/** Times a power of ten; negative powers leave it as it is, since they are put on the other side. */
function scaleUp(value: bigint, powerOfTen: number): bigint {
  return value * 10n ** BigInt(Math.max(0, powerOfTen))
}

/** A function of numbers. `of` is called with as many as it takes, and the place that an error should name. */
interface CalculatorFunction {
  readonly inputsMin: number
  readonly maxInputs: number
  readonly of: (inputs: readonly Rational[], at: number) => Rational
}

const zero = createRational(0n)
const half = createRational(1n, 2n)
/** Digits of a root that has no finite number of them. */
const rootDigits = 60

const functions: Readonly<Record<string, CalculatorFunction>> = {
  abs: one(absolute),
  ceil: one((value) => negate(roundDown(negate(value)))),
  floor: one(roundDown),
  max: many((a, b) => (isBelow(a, b) ? b : a)),
  min: many((a, b) => (isBelow(b, a) ? b : a)),
  round: { inputsMin: 1, maxInputs: 2, of: ([value = zero, places = zero], at) => round(value, places, at) },
  sqrt: one(takeRoot),
  sum: many(add),
}

function one(of: (value: Rational, at: number) => Rational): CalculatorFunction {
  return { inputsMin: 1, maxInputs: 1, of: ([value = zero], at) => of(value, at) }
}

function many(of: (a: Rational, b: Rational) => Rational): CalculatorFunction {
  return { inputsMin: 1, maxInputs: Infinity, of: (inputs) => inputs.reduce(of) }
}

function absolute(value: Rational): Rational {
  return { ...value, numerator: takeMagnitude(value.numerator) }
}

/** Rounds to so many places after the point (before it, if negative); halves go away from 0. */
function round(value: Rational, places: Rational, at: number): Rational {
  if (places.denominator !== 1n || takeMagnitude(places.numerator) > maxDigits) {
    throw new CalculationError(at, `round takes whole places from -${maxDigits} to ${maxDigits}`)
  }
  const shift = 10n ** takeMagnitude(places.numerator)
  const scale = places.numerator < 0n ? createRational(1n, shift) : createRational(shift)
  const rounded = divide(roundDown(add(multiply(absolute(value), scale), half)), scale)
  return value.numerator < 0n ? negate(rounded) : rounded
}

/** Exact where the root is a fraction, else to 60 digits and marked as inexact. */
function takeRoot({ numerator, denominator, exact }: Rational, at: number): Rational {
  if (numerator < 0n) throw new CalculationError(at, 'a negative number has no square root')
  const [above, below] = [findWholeRoot(numerator), findWholeRoot(denominator)]
  if (above * above === numerator && below * below === denominator) return createRational(above, below, exact)
  const wholeDigits = Math.ceil((countDigits(numerator) - countDigits(denominator)) / 2)
  const shift = BigInt(Math.max(0, rootDigits - wholeDigits))
  return createRational(findWholeRoot((numerator * 100n ** shift) / denominator), 10n ** shift, false)
}

/** `base` to a whole `exponent`. Throws `CalculationError` for another exponent, 0 to a negative one, and too many digits. */
function raise(base: Rational, exponent: Rational, at: number): Rational {
  if (exponent.denominator !== 1n) {
    throw new CalculationError(at, 'the exponent is not a whole number; for a square root use sqrt(x)')
  }
  const times = takeMagnitude(exponent.numerator)
  const exact = base.exact && exponent.exact
  if (base.numerator === 0n && exponent.numerator < 0n) throw new CalculationError(at, 'division by zero')
  // Only 0, 1 and -1 stay small under any exponent.
  if (base.denominator === 1n && takeMagnitude(base.numerator) < 2n) {
    if (times === 0n) return createRational(1n, 1n, exact)
    return createRational(times % 2n === 0n ? takeMagnitude(base.numerator) : base.numerator, 1n, exact)
  }
  const digits = Math.max(countDigits(base.numerator), countDigits(base.denominator)) - 1
  // A number of n + 1 digits is at least 10^n, and any other at least 2.
  if (times * BigInt(digits) > maxDigits || times > maxDigits * 4) {
    throw new CalculationError(at, `the result needs more than ${maxDigits} digits`)
  }
  const [above, below] = [base.numerator ** times, base.denominator ** times]
  return exponent.numerator < 0n ? createRational(below, above, exact) : createRational(above, below, exact)
}

const bound = 10n ** BigInt(maxDigits)

type Operator = '+' | '-' | '*' | '/' | '%' | '^'

/** A parsed expression. `at` is the place of the character that an error about it should name. */
type Expression =
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
function parse(tokens: readonly Token[]): Expression {
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
    if (!isSign(text)) throw createUnexpected(peek(), `"${text}" for the "(" at character ${opened + 1}`)
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
    if (text !== '(') throw createUnexpected(token, 'a number, a function or "("')
    const inner = expression(0, depth + 1)
    expect(')', at)
    return inner
  }

  const call = (name: string, at: number, depth: number): Expression => {
    if (!isSign('('))
      throw createUnexpected(peek(), `"(" after ${name}: names are functions, there are no variables`)
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
  if (peek().kind !== 'end') throw createUnexpected(peek(), 'an operator or the end')
  return whole
}

function createUnexpected({ kind, text, at }: Token, wanted: string): CalculationError {
  const found = kind === 'end' ? 'the end' : `"${text}"`
  const hint = text === ',' ? '; write thousands without a comma, as 1000 or 1_000' : ''
  return new CalculationError(at, `expected ${wanted}, found ${found}${hint}`)
}

/** A word of an expression. `at` is the place of its first character, from 0. */
type Token =
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
function readTokens(expression: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < expression.length) {
    const token = readToken(expression, at)
    if (token) tokens.push(token)
    at += token ? (expression.startsWith('**', token.at) ? 2 : token.text.length) : 1
  }
  return [...tokens, { kind: 'end', text: '', at: expression.length }]
}

function readToken(expression: string, at: number): Token | undefined {
  const character = String.fromCodePoint(expression.codePointAt(at) ?? 0)
  if (/\s/.test(character)) return undefined
  const digits = match(number, expression, at)
  if (digits !== '') return { kind: 'number', text: requireLiteral(digits, at), at }
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
function requireLiteral(digits: string, at: number): string {
  if (!/^0[\d_]/.test(digits)) return digits
  throw new CalculationError(at, `${digits} starts with 0; write thousands without a comma, as 1000 or 1_000`)
}
