// Digests of short texts are kept for a while: each call of a tool asks for that of its input several times.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { digestOf } from '@tallystick/core/vocabulary'
import { describe, expect, it, onTestFinished } from 'vitest'

interface Hash {
  digestInto: (this: Hash, out: Uint8Array) => void
}

/** Counts every SHA-256 that core computes until the test ends. */
async function countedHashes(): Promise<() => number> {
  const path = createRequire(join(import.meta.dirname, '../package.json')).resolve('@noble/hashes/sha2.js')
  const { sha256 } = (await import(pathToFileURL(path).href)) as { sha256: { create(): Hash } }
  let prototype = sha256.create()
  while (!Object.hasOwn(prototype, 'digestInto')) prototype = Object.getPrototypeOf(prototype) as Hash
  const { digestInto } = prototype
  let count = 0
  prototype.digestInto = function (out): void {
    count++
    digestInto.call(this, out)
  }
  onTestFinished(() => void (prototype.digestInto = digestInto))
  return () => count
}

let made = 0
/** A text that no test has asked for. */
const fresh = (): string => `A text of this test, number ${++made}.`

describe('the digest of a value', () => {
  it('is computed once for a text of 500 characters, quotes included, and each time for a longer one', async () => {
    const hashes = await countedHashes()
    const [short, long] = [498, 499].map((length) => fresh().padEnd(length, 'x')) as [string, string]
    const digests = [short, short, short].map(digestOf)
    expect(new Set(digests).size).toBe(1)
    expect(hashes()).toBe(1)
    expect(digestOf(long)).toBe(digestOf(long))
    expect(hashes()).toBe(3)
  })

  it('is kept while fewer than 1,999 others are asked for, and no longer', async () => {
    const hashes = await countedHashes()
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
