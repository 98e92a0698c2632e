import { calculator } from '@tallystick/tools/calculator'
import { describe, expect, it } from 'vitest'
import { calculate } from '../../src/built-in/expression.ts'
import { callContext, endingOf } from '../one-call.ts'

const tool = calculator()
const answer = async (expression: string): Promise<string> => {
  const { outcome, text } = await endingOf(tool, { expression })
  return outcome === 'success' ? text : `${outcome}: ${text}`
}

describe('calculator', () => {
  it.each([
    ['0.1 + 0.2', '0.3'],
    ['1 / 3 * 3', '1'],
    ['1_250 * 1.19 - 3', '1484.5'],
    ['2 + 3 * 4 - 5', '9'],
    ['(2 + 3) * 4', '20'],
    ['10 - 4 - 3', '3'],
    ['100 / 10 / 4', '2.5'],
    ['2 ^ 3 ^ 2', '512'],
    ['-2 ^ 2', '-4'],
    ['(-2) ^ 2', '4'],
    ['2 ^ -2 * 8', '2'],
    ['2 * 3 ^ 2', '18'],
    ['18 / 3 ^ 2', '2'],
    ['20 % 3 ^ 2', '2'],
    ['2 ** 10', '1024'],
    ['0 ^ 0', '1'],
    ['(-1) ^ 99999999999999999999', '-1'],
    ['(-1) ^ 99999999999999999998', '1'],
    ['(-1) ^ -3', '-1'],
    ['0 ^ 7', '0'],
    ['1 ^ -7', '1'],
    ['--3 + +2', '5'],
    ['7 % 3', '1'],
    ['10 % 7 % 2', '1'],
    ['-7 % 3', '-1'],
    ['7 % -3', '1'],
    ['5.5 % 2', '1.5'],
    ['6 × 7 ÷ 2 − 1', '20'],
    ['.5e-3', '0.0005'],
    ['1.5E+3', '1500'],
    ['2 ^ 200', '1606938044258990275541962092341162602522202993782792835301376'],
    ['1 / 2 ^ 20', '0.00000095367431640625'],
    ['-0.5', '-0.5'],
    [
      '1 / 2 ^ 100',
      '0.0000000000000000000000000000007888609052210118054117285652827862296732064351090230047702789306640625',
    ],
    [
      '1 / 2 ^ 101',
      '3.94430452610505902705864282641e-31 (rounded; exactly 1/2535301200456458802993406410752)',
    ],
    ['0 * -1', '0'],
    ['12.50 - 0.50', '12'],
    ['abs(-3.2)', '3.2'],
    ['floor(-1.5)', '-2'],
    ['ceil(-1.5)', '-1'],
    ['ceil(1.01)', '2'],
    ['floor(7)', '7'],
    ['round(2.5)', '3'],
    ['round(-2.5)', '-3'],
    ['round(1.005, 2)', '1.01'],
    ['round(1234.5, -2)', '1200'],
    ['min(3, 1.5, 2)', '1.5'],
    ['max(1 / 3, 0.3333)', '0.333333333333333333333333333333 (rounded; exactly 1/3)'],
    ['sum(0.1, 0.2, 0.3)', '0.6'],
    ['sqrt(2.25)', '1.5'],
    ['sqrt(16 / 49) * 7', '4'],
    ['sqrt(0)', '0'],
    ['sqrt(2)', '1.41421356237309504880168872421 (rounded)'],
    ['sqrt(2e-60)', '1.41421356237309504880168872421e-30 (rounded)'],
    ['round(sqrt(2), 3)', '1.414 (rounded)'],
    ['2 / 3', '0.666666666666666666666666666667 (rounded; exactly 2/3)'],
    ['-1e40 / 3', '-3.33333333333333333333333333333e+39 (rounded)'],
    ['1 / 3e9', '3.33333333333333333333333333333e-10 (rounded; exactly 1/3000000000)'],
    ['999999999999999999999999999999.7 / 1 + 1 / 3e40', '1e+30 (rounded)'],
  ])('says that %s is %s', async (expression, value) => {
    expect(await answer(expression)).toBe(value)
  })

  it.each([
    ['2 + * 3', 'At character 5: expected a number, a function or "(", found "*".'],
    [' ', 'At character 2: expected a number, a function or "(", found the end.'],
    ['(1 + 2', 'At character 7: expected ")" for the "(" at character 1, found the end.'],
    ['1 + 2)', 'At character 6: expected an operator or the end, found ")".'],
    ['2 3', 'At character 3: expected an operator or the end, found "3".'],
    ['2(3)', 'At character 2: expected an operator or the end, found "(".'],
    ['1,000 + 1', 'At character 3: 000 starts with 0; write thousands without a comma, as 1000 or 1_000.'],
    [
      '1,250 + 1',
      'At character 2: expected an operator or the end, found ","; write thousands without a comma, as 1000 or 1_000.',
    ],
    [
      'max(1,000, 2)',
      'At character 7: 000 starts with 0; write thousands without a comma, as 1000 or 1_000.',
    ],
    ['1 / (2 - 2)', 'At character 3: division by zero.'],
    ['5 % 0', 'At character 3: division by zero.'],
    ['0 ^ -1', 'At character 3: division by zero.'],
    ['2 ^ 0.5', 'At character 3: the exponent is not a whole number; for a square root use sqrt(x).'],
    ['1 + sqrt(-1)', 'At character 5: a negative number has no square root.'],
    [
      'pi * 2',
      'At character 4: expected "(" after pi: names are functions, there are no variables, found "*".',
    ],
    [
      'constructor(1)',
      'At character 1: there is no function constructor; there are abs, ceil, floor, max, min, round, sqrt, sum.',
    ],
    ['round(1, 2, 3)', 'At character 1: round takes 1 or 2 numbers, not 3.'],
    ['abs(1, 2)', 'At character 1: abs takes 1 numbers, not 2.'],
    ['round(1, 0.5)', 'At character 1: round takes whole places from -500 to 500.'],
    ['sum()', 'At character 5: expected a number, a function or "(", found ")".'],
    ['5 € + 1', 'At character 3: "€" has no meaning here; use numbers, + - * / % ^ ( ) and functions.'],
    ['🪵', 'At character 1: "🪵" has no meaning here; use numbers, + - * / % ^ ( ) and functions.'],
    ['1__0', 'At character 2: "_" has no meaning here; use numbers, + - * / % ^ ( ) and functions.'],
  ])('names the place of the fault in "%s"', async (expression, problem) => {
    const { outcome, text } = await endingOf(tool, { expression })
    expect(outcome).toBe('failed')
    expect(text).toContain(problem)
  })

  it.each([
    ['a tower of powers', '9 ^ 9 ^ 9 ^ 9', 'the result needs more than 500 digits'],
    ['a power of a fraction', '(2 / 3) ^ 5000', 'the result needs more than 500 digits'],
    ['a huge literal', '1e999999999', 'the result needs more than 500 digits'],
    ['a tiny literal', '1e-999999999', 'the result needs more than 500 digits'],
    ['a number above that', '1e500', 'At character 1: the result needs more than 500 digits'],
    ['a number beside that', '1e-500', 'At character 1: the result needs more than 500 digits'],
    ['a sum of that', '9e499 + 1e499', 'At character 7: the result needs more than 500 digits'],
    ['a quotient of that', '1 / 1e250 / 1e250', 'At character 11: the result needs more than 500 digits'],
    ['a call of that', 'sum(9e499, 1e499)', 'At character 1: the result needs more than 500 digits'],
    ['repeated squaring', `${'('.repeat(40)}2${' ^ 2)'.repeat(40)}`, 'the result needs more than 500 digits'],
    ['many parentheses', `${'('.repeat(66)}1`, 'At character 66: nested deeper than 64 levels'],
    ['many plus signs', `${'+'.repeat(66)}1`, 'nested deeper than 64 levels'],
    ['many signs', `${'-'.repeat(66)}1`, 'nested deeper than 64 levels'],
    ['many powers', `${'1 ^ '.repeat(70)}1`, 'nested deeper than 64 levels'],
  ])('refuses %s', async (_what, expression, problem) => {
    const { outcome, text } = await endingOf(tool, { expression })
    expect(outcome).toBe('failed')
    expect(text).toContain(problem)
  })

  it('takes numbers of 500 digits, above and below one', async () => {
    expect(await answer('9e499 / 1e499')).toBe('9')
    expect(await answer('1e-499 * 1e499')).toBe('1')
    expect(await answer(`${'9'.repeat(500)} % 10`)).toBe('9')
  })

  it('takes expressions of up to 1000 characters, however many terms', async () => {
    expect(await answer(`1${' + 1'.repeat(249)}`)).toBe('250')
    const verdict = await tool.check({ expression: '1'.repeat(1_001) }, callContext)
    expect(verdict).toMatchObject({ kind: 'refuse', outcome: 'invalid_input' })
  })

  it('is a read tool that can be named and described', () => {
    expect(tool).toMatchObject({ name: 'calculator', effect: 'read', recovery: 'rerun' })
    const named = calculator({ name: 'sums', description: 'Does sums.' })
    expect(named).toMatchObject({ name: 'sums', description: 'Does sums.' })
    expect(() => calculator({ title: 'sums' } as never)).toThrow(/calculator: title is not an option/)
  })
})

// How deep, long and large a calculation may be, and when its answer says that it is rounded.

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
