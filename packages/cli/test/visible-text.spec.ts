import { hostileTexts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { makeVisible } from '../src/terminal/text-width.ts'
import { rawCharacters } from './kit/raw-characters.ts'

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
