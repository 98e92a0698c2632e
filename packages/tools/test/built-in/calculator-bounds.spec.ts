// How deep, long and large a calculation may be, and when its answer says that it is rounded.
import { describe, expect, it } from 'vitest'
import { calculate } from '../../src/built-in/expression.ts'

/** One expression within another, so many levels deep. */
const within = (begin: string, levels: number, end = ''): string =>
  `${begin.repeat(levels)}1${end.repeat(levels)}`

describe('an expression', () => {
  it.each([
    ['powers', '1 ^ ', '', '1', 261],
    ['minus signs', '-', '', '1', 66],
    ['plus signs', '+', '', '1', 66],
    ['parentheses', '(', ')', '1', 66],
    ['calls', 'abs(', ')', '1', 261],
    ['second inputs of calls', 'sum(1,', ')', '65', 389],
  ])('may have 64 levels of %s', (_what, ...[begin, end, value, place]) => {
    expect(calculate(within(begin, 64, end))).toBe(value)
    expect(() => calculate(within(begin, 65, end))).toThrow(
      `At character ${place}: nested deeper than 64 levels.`,
    )
  })

  it('has 1000 characters at most', () => {
    expect(calculate('1'.padEnd(1_000))).toBe('1')
    const error = {
      name: 'ToolError',
      message: 'At character 1001: an expression has at most 1000 characters.',
    }
    expect(() => calculate('1'.padEnd(1_001))).toThrow(expect.objectContaining(error) as Error)
  })

  it.each([
    ['2**10', '1024'],
    ['6 · 7', '42'],
    ['10e-500 * 1e499', '1'],
    [`1.${'0'.repeat(500)}`, '1'],
    ['10 ^ 499 / 10 ^ 498', '10'],
    ['(1 / 3) ^ 1047 * 3 ^ 1047', '1'],
    ['round(1, 500)', '1'],
    ['round(1, -500)', '0'],
    ['1 / -3 * 3', '-1'],
    ['max(-1, -2)', '-1'],
    ['max(1, 2)', '2'],
    // Of equal numbers the first is the answer, as exact as it is.
    ['max(0, sqrt(2) * 0)', '0'],
    ['min(0, sqrt(2) * 0)', '0'],
    ['min(2, 1)', '1'],
    ['0e3 + floor(0) - abs(0)', '0'],
    ['sqrt(4) + sqrt(1e-100)', `2.${'0'.repeat(49)}1`],
  ])('%s is %s', (expression, value) => {
    expect(calculate(expression)).toBe(value)
  })

  it.each([
    ['2 constructor', 'At character 3: expected an operator or the end, found "constructor".'],
    ['7 %', 'At character 4: expected a number, a function or "(", found the end.'],
    ['round(1, 501)', 'At character 1: round takes whole places from -500 to 500.'],
    ['round(1, -501)', 'At character 1: round takes whole places from -500 to 500.'],
    ['1'.repeat(501), 'At character 1: the result needs more than 500 digits.'],
  ])('%s is refused', (expression, why) => {
    expect(() => calculate(expression)).toThrow(why)
  })
})

describe('a rounded answer', () => {
  const root = '1.41421356237309504880168872421'
  it.each([
    ['1 * sqrt(2)', root],
    ['1 + sqrt(2)', '2.41421356237309504880168872421'],
    ['1 / sqrt(2)', '0.707106781186547524400844362105'],
    ['sqrt(2) ^ 2', '2'],
    ['sqrt(2) ^ 1', root],
    ['1 / (sqrt(2) * 0 + 2)', '0.5'],
    ['(sqrt(2) * 0 + 1) / 2', '0.5'],
    ['2 ^ round(sqrt(2))', '2'],
    ['1 ^ round(sqrt(2))', '1'],
    ['sqrt(2) * 0', '0'],
    ['sqrt(2) * 0 + 1', '1'],
    ['sqrt(2e50)', '14142135623730950488016887.2421'],
    ['sqrt(2e51)', '44721359549995793928183473.3746'],
    ['sqrt(2e200)', `${root}e+100`],
  ])('of %s is marked', (expression, value) => {
    expect(calculate(expression)).toBe(`${value} (rounded)`)
  })

  it('has an exponent below 1e-7 and from 1e30 on', () => {
    expect(calculate('1 / 3e6')).toMatch(/^0\.0{6}3{30} /)
    expect(calculate('1 / 3e7')).toMatch(/^3\.3{29}e-8 /)
    expect(calculate('1e30 / 3')).toMatch(/^3{30} /)
    expect(calculate('1e31 / 3')).toMatch(/^3\.3{29}e\+30 /)
  })

  it('names the fraction that it is where that has 40 characters at most', () => {
    expect(calculate('1 / 3e37')).toBe(`3.${'3'.repeat(29)}e-38 (rounded; exactly 1/3${'0'.repeat(37)})`)
    expect(calculate('1 / 3e38')).toBe(`3.${'3'.repeat(29)}e-39 (rounded)`)
  })
})
