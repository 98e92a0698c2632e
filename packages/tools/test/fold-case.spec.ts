import { describe, expect, it } from 'vitest'
import { foldCase } from '../src/define/text.ts'

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
