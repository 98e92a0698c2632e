import { describe, expect, it } from 'vitest'
import { boundText, toVisibleText, foldCase, readWithin } from '../src/define/text.ts'

describe('what a reader sees of the output of a program', () => {
  it.each([
    ['a colour', 'a\u001b[31mb\u001b[0mc', 'abc'],
    ['a sequence without parameters', 'a\u001b[Hb', 'ab'],
    ['a sequence with one parameter of one digit', 'a\u001b[2Jb', 'ab'],
    ['a sequence that ends in a tilde or an at sign', 'a\u001b[3~b\u001b[4@c', 'abc'],
    ['a sequence that a line break cuts off', 'a\u001b[31\nb', 'a\nb'],
    ['a sequence that the end cuts off', 'a\u001b[31', 'a'],
    ['an escape character at the end', 'a\u001b', 'a'],
    ['the title of a window, ended by a bell', 'a\u001b]0;title\u0007b', 'ab'],
    ['the title of a window, ended by ESC \\', 'a\u001b]0;title\u001b\\b', 'ab'],
    ['a title that another sequence ends', 'a\u001b]0;title\u001b[1mb', 'ab'],
    ['a title that a line break ends', 'a\u001b]0;title\nb', 'a\nb'],
    ['a title without an end, of which the text stays', 'a\u001b]0;title', 'a0;title'],
    [
      'strings of the other kinds',
      'a\u001bPx\u001b\\\u001bXx\u001b\\\u001b^x\u001b\\\u001b_x\u001b\\b',
      'ab',
    ],
    ['a choice of characters', 'a\u001b(Bb\u001b#8c', 'abc'],
    ['a sequence of one character', 'a\u001b7b\u001bMc\u001b~d', 'abcd'],
    ['an escape character in front of a line break', 'a\u001b\nb', 'a\nb'],
    [
      'control characters, but for tabs and line breaks',
      'a\u0000\u0007\u0008\u000b\u007f\u009bb\tc\nd',
      'ab\tc\nd',
    ],
    ['returns, which are line breaks', 'a\r\nb\rc', 'a\nb\nc'],
    ['marks that turn the direction, and tags', 'a\u202eb\u2066c\u{e0041}d', 'abcd'],
    ['half a surrogate pair', 'a\ud800b', 'a\ufffdb'],
  ])('leaves out %s', (_what, given, visible) => {
    expect(toVisibleText(given)).toBe(visible)
  })

  it('keeps what follows a sequence that is longer than any sequence is', () => {
    const digits = '1'.repeat(4_096)
    expect(toVisibleText(`a\u001b[${digits}mb`)).toBe('ab')
    expect(toVisibleText(`a\u001b[${digits}1mb`)).toBe('a1mb')
    const title = 't'.repeat(4_095)
    expect(toVisibleText(`a\u001b]${title}\u0007b`)).toBe('ab')
    expect(toVisibleText(`a\u001b]${title}t\u0007b`)).toBe(`a${title}tb`)
  })
})

describe('a bounded text', () => {
  it.each([
    ['0123456789abc', 13, '0123456789abc'],
    ['0123456789abc', 12, '0123 … (cut)'],
    ['01234567😀', 9, '0 … (cut)'],
    ['😀123456789', 9, ' … (cut)'],
    ['0123456789', 3, ' … (cut)'],
  ])('of %j in %i characters is %j', (text, max, bounded) => {
    expect(boundText(text, max)).toBe(bounded)
  })
})

const characters = Array.from({ length: 0x11_0000 }, (_, point) => point)
  .filter((point) => point < 0xd800 || point > 0xdfff)
  .map((point) => String.fromCodePoint(point))

describe('a text without its case', () => {
  it('has each character at its place', () => {
    expect(characters.filter((character) => foldCase(character).length !== character.length)).toEqual([])
    const text = characters.join('')
    expect(foldCase(text)).toHaveLength(text.length)
  })

  it('is the same for two characters exactly where a regular expression that ignores case takes them for the same', () => {
    const cased = characters.filter(
      (character) => character.toLowerCase() !== character || character.toUpperCase() !== character,
    )
    const all = cased.join('')
    const byFold = Map.groupBy(cased, foldCase)
    // That expression takes İ for no other letter.
    const sameAs = (character: string): string[] =>
      (byFold.get(foldCase(character)) ?? []).filter((each) => each !== 'İ')
    for (const [folded, group] of byFold) {
      const [first = folded] = group.filter((each) => each !== 'İ')
      const escaped = `\\u{${first.codePointAt(0)?.toString(16)}}`
      expect(all.match(new RegExp(escaped, 'giu'))).toEqual(sameAs(first))
    }
    expect(byFold.size).toBeGreaterThan(1_400)
    expect(foldCase('İ')).toBe(foldCase('I'))
  })

  it('does not depend on the letters around a letter', () => {
    expect(foldCase('ΟΔΥΣΣΕΥΣ')).toBe(foldCase('οδυσσευς'))
    expect(foldCase('ΟΔΥΣΣΕΥΣ ΟΔΥΣΣΕΥΣΑ')).toBe('οδυσσευσ οδυσσευσα')
  })
})

describe('a text within some bytes', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['é', 1, ''],
    ['aé', 2, 'a'],
    ['aé', 3, 'aé'],
    ['🪵b', 3, ''],
    // A text that fits is left as it is, also one that begins with a byte order mark.
    ['\uFEFFa', 4, '\uFEFFa'],
  ])('of %j in %i bytes is %j', (text, bytesMax, within) => {
    expect(readWithin(text, bytesMax)).toBe(within)
  })
})
