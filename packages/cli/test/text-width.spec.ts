import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { toOneLine, formatTable } from '../src/command/text.ts'
import { fitText, measureText } from '../src/terminal/text-width.ts'

describe('text in columns', () => {
  it('counts two for wide letters and emoji, and none for marks over letters', () => {
    expect(['abc', '한국어', '日本', '👩‍👩‍👧‍👦', 'e\u0301'].map(measureText)).toEqual([3, 6, 4, 2, 1])
  })

  it('counts for each character what the tables of Unicode say', () => {
    const characters = Array.from({ length: 0x3000 - 0x20 }, (_, index) => String.fromCodePoint(0x20 + index))
    expect(characters.filter((each) => measureText(each) !== measured(each))).toEqual([])
  })

  it('counts for neighbouring characters what the tables of Unicode say', () => {
    const characters = Array.from({ length: 0x3000 - 0x20 }, (_, index) => String.fromCodePoint(0x20 + index))
    const narrow = characters.filter((each) => measureText(each) === 1)
    const pairs = narrow.flatMap((each, index) => [
      `${each}${narrow[index + 1] ?? ''}`,
      `#${each}`,
      `©${each}`,
    ])
    expect(pairs.filter((each) => measureText(each) !== measured(each))).toEqual([])
  })

  it('lines tables up whatever the letters', () => {
    const rows = formatTable([
      ['天気', 'wide', 'x'],
      ['get_weather', '表', 'x'],
    ]).split('\n')
    expect(rows.slice(0, 2).map((row) => measureText(row))).toEqual([20, 20])
    expect(rows.slice(0, 2).every((row) => row.endsWith('x'))).toBe(true)
  })

  it('cuts where the columns end, between letters, and says so', () => {
    expect(fitText('한국어', 6)).toBe('한국어')
    expect(fitText('한국어', 5)).toBe('한국…')
    expect(fitText('한국어', 4)).toBe('한…')
    expect(fitText('a👩‍👩‍👧‍👦b', 3)).toBe('a…')
    expect(measureText(toOneLine('日本語\n'.repeat(100_000), 40))).toBeLessThanOrEqual(40)
    expect(toOneLine(`${' '.repeat(10_000)}late`, 10)).toMatch(/…$/)
    expect(toOneLine('two\n\n lines', 20)).toBe('two lines')
  })
})

function measured(text: string): number {
  return stringWidth(text, { countAnsiEscapeCodes: true })
}
