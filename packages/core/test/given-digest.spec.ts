// Digests of short texts are kept for a while: each call of a tool asks for that of its input several times.
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { hostileTexts } from '@tallystick/testkit'
import { digestTextsWith } from '@tallystick/core/store-kit'
import { canonicalJson, digestOf } from '@tallystick/core/vocabulary'
import { describe, expect, it, onTestFinished } from 'vitest'
import { digestOfTwice } from '../src/values/digest.ts'

function digestOfNode(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** Counts every SHA-256 that core has the host compute until the test ends. */
function countedHashes(): () => number {
  let count = 0
  digestTextsWith((text) => {
    count++
    return digestOfNode(text)
  })
  onTestFinished(() => digestTextsWith(digestOfNode))
  count = 0
  return () => count
}

let made = 0
/** A text that no test has asked for. */
const fresh = (): string => `A text of this test, number ${++made}.`

describe('the digest of a value', () => {
  it('is computed once for a text of 500 characters, quotes included, and each time for a longer one', () => {
    const hashes = countedHashes()
    const [short, long] = [498, 499].map((length) => fresh().padEnd(length, 'x')) as [string, string]
    const digests = [short, short, short].map(digestOf)
    expect(new Set(digests).size).toBe(1)
    expect(hashes()).toBe(1)
    expect(digestOf(long)).toBe(digestOf(long))
    expect(hashes()).toBe(3)
  })

  it('is computed once where it is asked for twice in a row, however long the text, and again after another', () => {
    const hashes = countedHashes()
    const [text, other] = [fresh().padEnd(1_000, 'x'), fresh()]
    expect([text, text, other, text].map(digestOfTwice)).toEqual([text, text, other, text].map(digestOf))
    expect(hashes()).toBe(3 + 3 + 1)
    // What was asked for in this way is kept in no other.
    const once = fresh()
    expect(digestOfTwice(once)).toBe(digestOf(once))
    expect(hashes()).toBe(7 + 2)
  })

  it('is kept while fewer than 1,999 others are asked for, and no longer', () => {
    const hashes = countedHashes()
    /** Whether the digest of a text had to be computed. */
    const isComputed = (text: string): boolean => {
      const before = hashes()
      digestOf(text)
      return hashes() > before
    }
    /** After how many others the digest of a text is computed again. */
    const keptFor = (text: string): number => {
      digestOf(text)
      for (let others = 1; others < 10_000; others++) {
        expect(isComputed(fresh())).toBe(true)
        if (isComputed(text)) return others
      }
      return Infinity
    }
    const text = fresh()
    // Where the count begins depends on what was asked for before; from the second time on it does not.
    expect(keptFor(text)).toBeGreaterThanOrEqual(1_000)
    expect(keptFor(text)).toBe(1_999)
  })
})

describe('a digest of the host', () => {
  it('is the one that core computes itself, whatever the text', async () => {
    const path = createRequire(join(import.meta.dirname, '../package.json')).resolve('@noble/hashes/sha2.js')
    const { sha256 } = (await import(pathToFileURL(path).href)) as {
      sha256: (bytes: Uint8Array) => Uint8Array
    }
    digestTextsWith(digestOfNode)
    for (const { text } of hostileTexts) {
      const own = Buffer.from(sha256(new TextEncoder().encode(canonicalJson(text)))).toString('hex')
      expect(digestOf(text)).toBe(own)
    }
  })

  it('is refused where it is not a SHA-256 in hex', () => {
    const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
    const upper = (text: string): string => digestOfNode(text).toUpperCase()
    for (const other of [md5, upper, () => '']) {
      expect(() => digestTextsWith(other)).toThrow('computes no SHA-256 in hex')
    }
    expect(digestOf(fresh())).toBe(digestOfNode(canonicalJson(`A text of this test, number ${made}.`)))
  })
})
