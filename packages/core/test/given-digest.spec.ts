import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { hostileTexts } from '@tallystick/testkit'
import { digestTextsWith } from '@tallystick/core/store-kit'
import { toCanonicalJson, computeDigest } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'

function digestOfNode(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

let made = 0
/** A text that no test has asked for. */
const fresh = (): string => `A text of this test, number ${++made}.`

describe('a digest of the host', () => {
  it('is the one that core computes itself, whatever the text', async () => {
    const path = createRequire(join(import.meta.dirname, '../package.json')).resolve('@noble/hashes/sha2.js')
    const { sha256 } = (await import(pathToFileURL(path).href)) as {
      sha256: (bytes: Uint8Array) => Uint8Array
    }
    digestTextsWith(digestOfNode)
    for (const { text } of hostileTexts) {
      const own = Buffer.from(sha256(new TextEncoder().encode(toCanonicalJson(text)))).toString('hex')
      expect(computeDigest(text)).toBe(own)
    }
  })

  it('is refused where it is not a SHA-256 in hex', () => {
    const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
    const upper = (text: string): string => digestOfNode(text).toUpperCase()
    for (const other of [md5, upper, () => '']) {
      expect(() => digestTextsWith(other)).toThrow('does not compute SHA-256 in hex')
    }
    expect(computeDigest(fresh())).toBe(digestOfNode(toCanonicalJson(`A text of this test, number ${made}.`)))
  })
})
