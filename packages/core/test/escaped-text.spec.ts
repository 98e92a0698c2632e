import { describe, expect, it } from 'vitest'
import { findEndOfWords, toSmallLetters, mayBeAt } from '../src/values/secrets.ts'

/** How much of a text the words take that it begins with; `undefined` where it does not begin with them. */
const taken = (words: string, text: string): string | undefined => {
  const end = findEndOfWords(words, text, 0)
  return end === undefined ? undefined : text.slice(0, end)
}

describe('words that are escaped', () => {
  it.each([
    ['&', '&amp;'],
    ['"', '&quot;'],
    ["'", '&apos;'],
    ['<', '&lt;'],
    ['>', '&gt;'],
    ['&', '&AMP;'],
    ['/', '&#47;'],
    ['/', '&#0000047;'],
    ['/', '&#x2f;'],
    ['/', '&#x2F;'],
    ['/', '&#X00002f;'],
    ['\uffff', '&#65535;'],
    ['/', '%2f'],
    ['/', '%2F'],
    ['/', '\\/'],
    ['"', '\\"'],
    ["'", "\\'"],
    ['\\', '\\\\'],
    ['/', '\\u002f'],
    ['/', '\\U002F'],
    ['/', '\\x2f'],
    ['k', '%4B'],
    ['k', '\\u004b'],
    ['%', '%'],
    ['%', '%25'],
    ['\\', '\\'],
    ['k', 'K'],
  ])('are found: %s written as %s', (character, written) => {
    expect(taken(character, written)).toBe(written)
    expect(taken(`a${character}b`, `a${written}b and more`)).toBe(`a${written}b`)
    expect(mayBeAt(character, `x${written}`, 1)).toBe(true)
  })

  it.each([
    ['/', '&#00000047;'],
    ['/', '&#x000002f;'],
    ['/', '&#47'],
    ['"', '&quots;'],
    ['/', '%2'],
    ['/', '%g2'],
    ['/', '\\u02f'],
    ['/', '\\x2'],
    ['/', ''],
    ['ä', 'Ä'],
    ['\uffff', '&#131071;'],
  ])('are not found: %s in %s', (character, text) => {
    expect(taken(character, text)).toBeUndefined()
    expect(taken(`a${character}b`, `a${text}b`)).toBeUndefined()
  })

  it.each(['\n', '\r\n', '\\n', '\\r\\n', '\n ', '\r\n\t', '\\n '])(
    'may be broken into lines between two characters: %j',
    (lineBreak) => {
      expect(taken('ab', `a${lineBreak}b`)).toBe(`a${lineBreak}b`)
      expect(taken('a/', `a${lineBreak}%2f`)).toBe(`a${lineBreak}%2f`)
      expect(taken('ab', `${lineBreak}ab`)).toBeUndefined()
      expect(taken('ab', `a${lineBreak}`)).toBeUndefined()
      expect(taken('ab', 'a')).toBeUndefined()
    },
  )

  it.each(['\r', '\n\n', '\n  ', ' ', '\\r', '\\t'])('are not found across anything else: %j', (between) => {
    expect(taken('ab', `a${between}b`)).toBeUndefined()
  })

  it('end at the farthest place where the text can be read in several ways', () => {
    expect(taken('%', '%25')).toBe('%25')
    expect(taken('\\', '\\\\')).toBe('\\\\')
    expect(taken('%2', '%25')).toBe('%2')
    expect(taken('%2', '%2525')).toBe('%252')
    expect(taken('\\n', 'x')).toBeUndefined()
    expect(taken('\\na', '\\na')).toBe('\\na')
  })

  it('are looked for at one place only, and all of them', () => {
    expect(findEndOfWords('ab', 'xab', 1)).toBe(3)
    expect(findEndOfWords('ab', 'xab', 0)).toBeUndefined()
    expect(findEndOfWords('abc', 'abd', 0)).toBeUndefined()
    expect(findEndOfWords('', 'a', 0)).toBe(0)
  })

  it('begin nowhere but at their first character or at an escape', () => {
    expect(['a', 'A', '%', '\\', '&'].map((text) => mayBeAt('a', text, 0))).toEqual(Array(5).fill(true))
    expect(['b', '', ' ', 'constructor'].map((text) => mayBeAt('a', text, 0))).toEqual(Array(4).fill(false))
    expect(mayBeAt('a', 'ab', 1)).toBe(false)
  })

  it('have letters of ASCII in small, and all others as they are', () => {
    expect(toSmallLetters('AZ[@az İÄ')).toBe('az[@az İÄ')
  })
})
