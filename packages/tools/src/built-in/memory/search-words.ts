import type { SearchPhrases } from './memory-store.ts'

/** Bounds of a query, and of one word. */
const maxPhrases = 16
const maxWordsOfPhrase = 16
const maxWordBytes = 192
/** A shorter word has to be there as it is: as a beginning it would be that of too many. */
const leastBeginning = 3

/** Scripts that put no space between words: each of their characters is searched as a word. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu

/**
 * The words of a text as a store indexes them: without case and accents, and each written as `w` and the hexadecimal digits of
 * its UTF-8. So no text has a meaning in the query language of a store, and all stores agree about what a word is.
 */
export function indexedWords(text: string): readonly string[] {
  return plainWords(text).flatMap(wordsOf).map(written)
}

/** The phrases of a query, in the form of `indexedWords`. */
export function searchPhrases(query: string): SearchPhrases {
  const words = [...new Set(plainWords(query))].slice(0, maxPhrases)
  return words.map((word) => wordsOf(word).slice(0, maxWordsOfPhrase).map(written))
}

/** Whether a word may be the beginning of a longer one, by its written form. */
export function mayContinue(word: string): boolean {
  return word.length > 2 * leastBeginning
}

function plainWords(text: string): readonly string[] {
  const plain = text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  return plain.match(/[\p{L}\p{N}]+/gu) ?? []
}

function wordsOf(word: string): readonly string[] {
  return word.replaceAll(unspaced, ' $& ').split(' ').filter(Boolean)
}

function written(word: string): string {
  return `w${Buffer.from(word).subarray(0, maxWordBytes).toString('hex')}`
}
