import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { oneLine, table } from '../src/command/text.ts'
import { fitted, textWidth } from '../src/terminal/text-width.ts'

describe('text in columns', () => {
  it('counts two for wide letters and emoji, and none for marks over letters', () => {
    expect(['abc', '한국어', '日本', '👩‍👩‍👧‍👦', 'e\u0301'].map(textWidth)).toEqual([3, 6, 4, 2, 1])
  })

  it('counts for each character what the tables of Unicode say', () => {
    const characters = Array.from({ length: 0x3000 - 0x20 }, (_, index) => String.fromCodePoint(0x20 + index))
    expect(characters.filter((each) => textWidth(each) !== measured(each))).toEqual([])
  })

  it('counts for neighbouring characters what the tables of Unicode say', () => {
    const characters = Array.from({ length: 0x3000 - 0x20 }, (_, index) => String.fromCodePoint(0x20 + index))
    const narrow = characters.filter((each) => textWidth(each) === 1)
    const pairs = narrow.flatMap((each, index) => [
      `${each}${narrow[index + 1] ?? ''}`,
      `#${each}`,
      `©${each}`,
    ])
    expect(pairs.filter((each) => textWidth(each) !== measured(each))).toEqual([])
  })

  it('lines tables up whatever the letters', () => {
    const rows = table([
      ['天気', 'wide', 'x'],
      ['get_weather', '表', 'x'],
    ]).split('\n')
    expect(rows.slice(0, 2).map((row) => textWidth(row))).toEqual([20, 20])
    expect(rows.slice(0, 2).every((row) => row.endsWith('x'))).toBe(true)
  })

  it('cuts where the columns end, between letters, and says so', () => {
    expect(fitted('한국어', 6)).toBe('한국어')
    expect(fitted('한국어', 5)).toBe('한국…')
    expect(fitted('한국어', 4)).toBe('한…')
    expect(fitted('a👩‍👩‍👧‍👦b', 3)).toBe('a…')
    expect(textWidth(oneLine('日本語\n'.repeat(100_000), 40))).toBeLessThanOrEqual(40)
    expect(oneLine(`${' '.repeat(10_000)}late`, 10)).toMatch(/…$/)
    expect(oneLine('two\n\n lines', 20)).toBe('two lines')
  })
})

function measured(text: string): number {
  return stringWidth(text, { countAnsiEscapeCodes: true })
}
