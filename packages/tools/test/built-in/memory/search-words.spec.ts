// The words of texts and queries, as every store of memories compares them.
import { describe, expect, it } from 'vitest'
import { listIndexWords, mayContinue, toSearchPhrases } from '../../../src/built-in/memory/memory-store.ts'

const written = (word: string): string => `w${Buffer.from(word).toString('hex')}`

describe('the words of a memory', () => {
  it('given case, accents and signs, when they are indexed, then letters and digits alone are left', () => {
    expect(listIndexWords('Café-Bar, "Nº 7"')).toEqual(['cafe', 'bar', 'no', '7'].map(written))
  })

  it('given a script without spaces, when it is indexed, then each character is a word', () => {
    expect(listIndexWords('東京tower')).toEqual(['東', '京', 'tower'].map(written))
    expect(toSearchPhrases('東京')).toEqual([['東', '京'].map(written)])
  })

  it('given a long query, when it is read, then sixteen words of it count, each once', () => {
    const words = Array.from({ length: 17 }, (_, index) => `word${index}`)
    expect(toSearchPhrases(['word0', ...words].join(' '))).toEqual(
      words.slice(0, 16).map((word) => [written(word)]),
    )
  })

  it('given a long word, when it is read, then sixteen characters of it count where each is a word, and else 192 bytes', () => {
    expect(toSearchPhrases('京'.repeat(17))).toEqual([Array.from({ length: 16 }, () => written('京'))])
    expect(toSearchPhrases('a'.repeat(193))).toEqual([[written('a'.repeat(192))]])
    expect(listIndexWords('a'.repeat(193))).toEqual([written('a'.repeat(192))])
  })

  it('given a short word, when it is searched, then it is not a beginning of a longer one', () => {
    expect(['te', 'ten'].map((word) => mayContinue(written(word)))).toEqual([false, true])
  })
})
