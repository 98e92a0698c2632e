import { hostileTexts } from '@tallystick/testkit'
import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { toOneLine, formatTable } from '../src/command/text.ts'
import { fitText, measureText, makeVisible } from '../src/terminal/text-width.ts'
import { rawCharacters } from './kit/raw-characters.ts'

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

describe('text from outside, made visible', () => {
  it.each(hostileTexts.filter(({ name }) => name !== 'one sign of many parts'))(
    'shows nothing raw of what would: $name',
    ({ text }) => {
      expect(rawCharacters(makeVisible(text))).toEqual([])
    },
  )

  it('leaves text, accents, ideographs, right-to-left letters and emoji as they are', () => {
    const text = 'Zürich\t東京 שלום 🙂 ❤️ 👍🏽 👩‍💻 👩🏽‍🚀 1️⃣ #️⃣ 🇰🇷\nnext line'
    expect(makeVisible(text)).toBe(text)
    expect(makeVisible('one\r\ntwo')).toBe('one\ntwo')
  })

  it('shows joiners and selectors that belong to no emoji', () => {
    expect(makeVisible('pay\u200Dpal \uFE0F x\uFE0F')).toBe(String.raw`pay\u200dpal \ufe0f x\ufe0f`)
    expect(makeVisible('hi\u{E0069}')).toBe(String.raw`hi\udb40\udc69`)
  })

  it('keeps JSON the JSON of the same value, and visible text as it is', () => {
    for (const { text } of hostileTexts) {
      const shown = makeVisible(JSON.stringify({ [text]: text }))
      expect(JSON.parse(shown)).toEqual({ [text]: text })
      expect(makeVisible(shown)).toBe(shown)
    }
  })
})
