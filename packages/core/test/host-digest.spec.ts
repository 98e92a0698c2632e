// Which function computes the digests of a process: the one of the host, where it has one and none was given.
import { createHash } from 'node:crypto'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  computeDigest,
  digestTextsByDefault,
  digestTextsWith,
  type TextDigest,
  useHostDigest,
} from '../src/values/digest.ts'
import { findHostDigest } from '../src/values/host.ts'

function digestOfNode(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** As in a process that was given no function. */
beforeEach(() => useHostDigest(undefined))
afterEach(() => useHostDigest(digestOfNode))

let made = 0
/** A text that no test has asked for. */
const fresh = (): string => `A text of this file, number ${++made}.`

/** The same as that of Node, with the texts that it was asked for. */
function counted(): { readonly digest: TextDigest; readonly texts: string[] } {
  const texts: string[] = []
  const digest: TextDigest = (text) => {
    texts.push(text)
    return digestOfNode(text)
  }
  return { digest, texts }
}

describe('the digest of the host', () => {
  it('is SHA-256 in hex in Node, and missing where the host has no such function', () => {
    expect(findHostDigest()?.('a€')).toBe(digestOfNode('a€'))
    onTestFinished(() => void vi.unstubAllGlobals())
    for (const process of [undefined, {}, { getBuiltinModule: () => undefined }]) {
      vi.stubGlobal('process', process)
      expect(findHostDigest()).toBeUndefined()
    }
  })

  it('is used by default, and looked for once', () => {
    const { digest, texts } = counted()
    digestTextsByDefault(() => digest)
    digestTextsByDefault(() => expect.unreachable('one is there'))
    const text = fresh()
    expect(computeDigest(text)).toBe(digestOfNode(`"${text}"`))
    expect(texts).toEqual(['abc', `"${text}"`])
  })

  it('does not take the place of one that was given', () => {
    const [given, found] = [counted(), counted()]
    digestTextsWith(given.digest)
    digestTextsByDefault(() => found.digest)
    const text = fresh()
    computeDigest(text)
    expect([given.texts, found.texts]).toEqual([['abc', `"${text}"`], []])
  })

  const notImplemented: TextDigest = () => {
    throw new Error('crypto.hash is not implemented')
  }

  it.each([undefined, () => 'ba7816bf', notImplemented])('is not used where it is %s', (other) => {
    digestTextsByDefault(() => other)
    const text = fresh()
    expect(computeDigest(text)).toBe(digestOfNode(`"${text}"`))
  })

  it('is that of Node for a runtime', () => {
    const hash = vi.spyOn(process.getBuiltinModule('node:crypto'), 'hash')
    onTestFinished(() => hash.mockRestore())
    createRuntime({ ledger: memoryLedger() })
    const text = fresh()
    computeDigest(text)
    expect(hash.mock.calls).toEqual([
      ['sha256', 'abc'],
      ['sha256', `"${text}"`],
    ])
  })
})
