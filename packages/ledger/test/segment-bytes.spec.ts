import { describe, expect, it } from 'vitest'
import { SegmentBytes } from '../src/content/event/segment-bytes.ts'
import type { WrittenBody } from '../src/content/event/stored-body.ts'

const maxBytes = 32 * 1024

function written(body: string | Uint8Array): WrittenBody {
  return { written: body, contents: [] }
}

/** A text of so many bytes, in characters of one byte. */
const plain = (bytes: number): WrittenBody => written('x'.repeat(bytes))
/** A text of so many characters of three bytes. */
const wide = (characters: number): WrittenBody => written('€'.repeat(characters))

describe('a row', () => {
  it.each([
    ['texts', plain(20_000), plain(12_768), plain(1)],
    ['wide characters', wide(6_000), wide(4_922), plain(3)],
    ['sealed bytes', written(new Uint8Array(20_000)), plain(12_768), written(new Uint8Array(1))],
  ])('takes %s up to 32 KiB of bytes, and nothing more', (_name, first, second, third) => {
    const row = new SegmentBytes(first)
    expect([row.takes(second), row.takes(third), row.takes(plain(0))]).toEqual([true, false, true])
  })

  it('takes many small bodies, and counts each of them once', () => {
    const row = new SegmentBytes(plain(64))
    const taken = Array.from({ length: 600 }, () => row.takes(plain(64)))
    expect(taken.filter(Boolean)).toHaveLength(maxBytes / 64 - 1)
    expect(taken.lastIndexOf(true)).toBe(maxBytes / 64 - 2)
  })
})
