import { getOwn } from '@tallystick/core/internal'
import { Fraction } from 'fraction.js'
import { ToolError } from '../define/outcome.ts'

/** Characters of an expression. */
export const maxLength = 1_000
/** How deep parentheses, calls, signs and powers may nest. */
const maxDepth = 64
/** Digits of a numerator or denominator: what keeps every step in well under a millisecond. */
const maxDigits = 500
const bound = 10n ** BigInt(maxDigits)

/** The error for an expression that has no value. It names the character, from 1. */
function createError(at: number, problem: string): ToolError {
  return new ToolError(`At character ${at + 1}: ${problem}.`)
}

/** The value of an expression, as text. Throws `ToolError` for one that has none. */
export function calculate(expression: string): string {
  if (expression.length > maxLength) {
    throw createError(maxLength, `an expression has at most ${maxLength} characters`)
  }
  return writeNumber(parse(readTokens(expression))())
}

/** A number. `exact` is false once a root that has no finite digits took part. */
interface Value {
  readonly number: Fraction
  readonly exact: boolean
}

/** Calculates a part of an expression. Throws `ToolError` if it has no value, or one of too many digits. */
type Calculation = () => Value

function requireBounded(value: Value, at: number): Value {
  if (value.number.n >= bound || value.number.d >= bound) throw createTooLarge(at)
  return value
}

function createTooLarge(at: number): ToolError {
  return createError(at, `the result needs more than ${maxDigits} digits`)
}

function tenTo(exponent: number): Fraction {
  const power = 10n ** BigInt(Math.abs(exponent))
  return exponent < 0 ? new Fraction(1n, power) : new Fraction(power)
}

type Operator = '+' | '-' | '*' | '/' | '%' | '^'

function applyOperator(operator: Operator, left: Value, right: Value, at: number): Value {
  const [a, b] = [left.number, right.number]
  if ((operator === '/' || operator === '%') && b.n === 0n) throw createError(at, 'division by zero')
  const number = {
    '+': () => a.add(b),
    '-': () => a.sub(b),
    '*': () => a.mul(b),
    '/': () => a.div(b),
    '%': () => a.mod(b),
    '^': () => raise(a, b, at),
  }[operator]()
  return requireBounded({ number, exact: left.exact && right.exact }, at)
}

/** Throws `ToolError` for an exponent that is not whole, for 0 to a negative one, and for too many digits. */
function raise(base: Fraction, exponent: Fraction, at: number): Fraction {
  if (exponent.d !== 1n) {
    throw createError(at, 'the exponent is not a whole number; for a square root use sqrt(x)')
  }
  if (base.n === 0n && exponent.s < 0n) throw createError(at, 'division by zero')
  const digits = Math.max(countDigits(base.n), countDigits(base.d)) - 1
  // Only 0, 1 and -1 stay small under any exponent.
  const isSmall = base.d === 1n && base.n < 2n
  // A number of n + 1 digits is at least 10^n, and any other at least 2.
  if (!isSmall && (exponent.n * BigInt(digits) > maxDigits || exponent.n > maxDigits * 4))
    throw createTooLarge(at)
  return base.pow(exponent)
}

/** A function of numbers. `of` is called with as many as it takes, and the place that an error should name. */
interface CalculatorFunction {
  readonly inputsMin: number
  readonly maxInputs: number
  readonly of: (inputs: readonly Value[], at: number) => Value
}

const zero: Value = { number: new Fraction(0n), exact: true }
/** Digits of a root that has no finite number of them. */
const rootDigits = 60

const functions: Readonly<Record<string, CalculatorFunction>> = {
  abs: one((number) => number.abs()),
  ceil: one((number) => number.ceil()),
  floor: one((number) => number.floor()),
  max: many((a, b) => (a.number.lt(b.number) ? b : a)),
  min: many((a, b) => (b.number.lt(a.number) ? b : a)),
  round: {
    inputsMin: 1,
    maxInputs: 2,
    of: ([value = zero, places = zero], at) => ({ ...value, number: round(value.number, places.number, at) }),
  },
  sqrt: { inputsMin: 1, maxInputs: 1, of: ([value = zero], at) => takeRoot(value, at) },
  sum: many((a, b) => ({ number: a.number.add(b.number), exact: a.exact && b.exact })),
}

function one(of: (number: Fraction) => Fraction): CalculatorFunction {
  return { inputsMin: 1, maxInputs: 1, of: ([value = zero]) => ({ ...value, number: of(value.number) }) }
}

function many(of: (a: Value, b: Value) => Value): CalculatorFunction {
  return { inputsMin: 1, maxInputs: Infinity, of: (inputs) => inputs.reduce(of) }
}

/** Rounds to so many places after the point (before it, if negative); halves go away from 0. */
function round(number: Fraction, places: Fraction, at: number): Fraction {
  if (places.d !== 1n || places.n > maxDigits) {
    throw createError(at, `round takes whole places from -${maxDigits} to ${maxDigits}`)
  }
  const scale = tenTo(Number(places.s * places.n))
  const rounded = number.abs().mul(scale).add(1n, 2n).floor().div(scale)
  return number.s < 0n ? rounded.neg() : rounded
}

/** Exact where the root is a fraction, else to 60 digits and marked as inexact. */
function takeRoot({ number: { s, n, d }, exact }: Value, at: number): Value {
  if (s < 0n && n > 0n) throw createError(at, 'a negative number has no square root')
  const [above, below] = [findWholeRoot(n), findWholeRoot(d)]
  if (above * above === n && below * below === d) return { number: new Fraction(above, below), exact }
  const wholeDigits = Math.ceil((countDigits(n) - countDigits(d)) / 2)
  const shift = BigInt(Math.max(0, rootDigits - wholeDigits))
  return { number: new Fraction(findWholeRoot((n * 100n ** shift) / d), 10n ** shift), exact: false }
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

function countDigits(value: bigint): number {
  return value.toString().length
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
function writeNumber({ number: { s, n, d }, exact }: Value): string {
  const places = countPlaces(d)
  const sign = s < 0n && n > 0n ? '-' : ''
  if (exact && places !== undefined && places <= maxPlaces) {
    return sign + withPoint(((n * 10n ** BigInt(places)) / d).toString(), places)
  }
  const fraction = `${sign}${n}/${d}`
  const exactly = exact && fraction.length <= maxFractionCharacters ? `; exactly ${fraction}` : ''
  return `${sign}${writeRounded(n, d)} (rounded${exactly})`
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

/** Parses tokens by operator precedence (Pratt's method). Throws `ToolError` at the first that has no place. */
function parse(tokens: readonly Token[]): Calculation {
  let position = 0
  // Nothing is read after the end, which no rule takes.
  const peek = (): Token => tokens[position] as Token
  const next = (): Token => tokens[position++] as Token
  const expect = (text: string, opened: number): void => {
    if (peek().text !== text)
      throw createUnexpected(peek(), `"${text}" for the "(" at character ${opened + 1}`)
    next()
  }

  const expression = (bindingMin: number, depth: number): Calculation => {
    if (depth > maxDepth) throw createError(peek().at, `nested deeper than ${maxDepth} levels`)
    let result = operand(depth)
    for (;;) {
      const { kind, text, at } = peek()
      const operator = kind === 'sign' && text in binding ? (text as Operator) : undefined
      if (!operator || binding[operator].left < bindingMin) return result
      next()
      const left = result
      const right = expression(binding[operator].right, depth + 1)
      result = () => applyOperator(operator, left(), right(), at)
    }
  }

  const operand = (depth: number): Calculation => {
    const token = next()
    const { kind, text, at } = token
    if (kind === 'number') return () => readNumber(text, at)
    if (kind === 'name') return call(text, at, depth)
    if (text === '-') {
      const negated = expression(signBinding, depth + 1)
      return () => {
        const { number, exact } = negated()
        return { number: number.neg(), exact }
      }
    }
    if (text === '+') return expression(signBinding, depth + 1)
    if (text !== '(') throw createUnexpected(token, 'a number, a function or "("')
    const inner = expression(0, depth + 1)
    expect(')', at)
    return inner
  }

  const call = (name: string, at: number, depth: number): Calculation => {
    const { text, at: opened } = peek()
    if (text !== '(')
      throw createUnexpected(peek(), `"(" after ${name}: names are functions, there are no variables`)
    const inputs: Calculation[] = []
    do {
      next()
      inputs.push(expression(0, depth + 1))
    } while (peek().text === ',')
    expect(')', opened)
    return () => {
      const values = inputs.map((input) => input())
      const called = getOwn(functions, name)
      if (!called) {
        const names = Object.keys(functions).join(', ')
        throw createError(at, `there is no function ${name}; there are ${names}`)
      }
      const { inputsMin, maxInputs } = called
      // A call is parsed with one input at least.
      if (values.length > maxInputs) {
        const wanted = maxInputs === inputsMin ? `${inputsMin}` : `${inputsMin} or ${maxInputs}`
        throw createError(at, `${name} takes ${wanted} numbers, not ${values.length}`)
      }
      return requireBounded(called.of(values, at), at)
    }
  }

  const whole = expression(0, 0)
  if (peek().kind !== 'end') throw createUnexpected(peek(), 'an operator or the end')
  return whole
}

function createUnexpected({ kind, text, at }: Token, wanted: string): ToolError {
  const found = kind === 'end' ? 'the end' : `"${text}"`
  const hint = text === ',' ? '; write thousands without a comma, as 1000 or 1_000' : ''
  return createError(at, `expected ${wanted}, found ${found}${hint}`)
}

function readNumber(text: string, at: number): Value {
  const [, whole = '', places = '', exponent = '0'] =
    // Every token of a number has this form.
    /^(\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text.replaceAll('_', '')) as RegExpExecArray
  const scale = Number(exponent) - places.length
  if (Math.abs(scale) > maxDigits) throw createTooLarge(at)
  return requireBounded({ number: tenTo(scale).mul(BigInt(whole + places)), exact: true }, at)
}

/** A word of an expression. `at` is the place of its first character, from 0. */
interface Token {
  readonly kind: 'number' | 'name' | 'sign' | 'end'
  readonly text: string
  readonly at: number
}

const word =
  /(?<number>(?:\d+(?:_\d+)*(?:\.\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z][A-Za-z0-9]*)|(?<sign>\*\*|[-+*/%^(),×·÷−])|\s/y

/** Signs that models write as well, and what they mean here. */
const aliases: Readonly<Record<string, string>> = { '**': '^', '×': '*', '·': '*', '÷': '/', '−': '-' }

/** Splits an expression into tokens; the last is `end`. Throws `ToolError` for a character that has no place. */
function readTokens(expression: string): readonly Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < expression.length) {
    word.lastIndex = at
    const found = word.exec(expression)
    if (found === null) {
      const character = String.fromCodePoint(Number(expression.codePointAt(at)))
      throw createError(at, `"${character}" has no meaning here; use numbers, + - * / % ^ ( ) and functions`)
    }
    const { number, name, sign } = found.groups as Readonly<Record<string, string | undefined>>
    if (number !== undefined) {
      // They are what "1,000" leaves after its comma.
      if (/^0[\d_]/.test(number)) {
        throw createError(at, `${number} starts with 0; write thousands without a comma, as 1000 or 1_000`)
      }
      tokens.push({ kind: 'number', text: number, at })
    } else if (name !== undefined) tokens.push({ kind: 'name', text: name, at })
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: aliases[sign] ?? sign, at })
    at += found[0].length
  }
  return [...tokens, { kind: 'end', text: '', at: expression.length }]
}
