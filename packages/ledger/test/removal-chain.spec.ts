import { createHash } from 'node:crypto'
import { type RunId } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { type Removal, isAsWritten, removalRows, storedRemoval } from '../src/record/removal.ts'

const redacted: Removal = {
  runId: 'run_a' as RunId,
  fromSeq: 2,
  toSeq: 3,
  kind: 'redacted',
  at: 5,
  by: 'ada',
  reason: 'asked',
  kept: '[null,null]',
}
const dropped: Removal = {
  runId: 'run_b' as RunId,
  fromSeq: 1,
  toSeq: 9,
  kind: 'dropped',
  at: 6,
  by: 'bob',
  headHash: 'ab',
}

const texts = [
  '{"at":5,"by":"ada","fromSeq":2,"kept":"[null,null]","kind":"redacted","pos":8,"reason":"asked","runId":"run_a","toSeq":3}',
  '{"at":6,"by":"bob","fromSeq":1,"headHash":"ab","kind":"dropped","pos":9,"runId":"run_b","toSeq":9}',
]

const last = { pos: 7, hash: new Uint8Array(32).fill(4) }

/** The hash as the files of every release hold it. */
function hashOf(previous: Uint8Array, text: string): string {
  return createHash('sha256').update(Uint8Array.of(3)).update(previous).update(text).digest('hex')
}

describe('the chain of removals', () => {
  it('hashes the byte 3, the hash before and the canonical JSON of the removal with its place', () => {
    const rows = removalRows(last, [redacted, dropped])
    expect(rows.map(({ pos }) => pos)).toEqual([8, 9])
    let previous: Uint8Array = last.hash
    for (const [index, { hash }] of rows.entries()) {
      expect(Buffer.from(hash).toString('hex')).toBe(hashOf(previous, texts[index] as string))
      previous = hash
    }
  })

  it('holds rows that are read as they were written, each after the one before it', () => {
    const [first, second] = removalRows(last, [redacted, dropped]).map(storedRemoval)
    if (first === undefined || second === undefined) throw new Error('no rows')
    expect(first).toEqual({ ...redacted, pos: 8, hash: first.hash })
    expect(second).toEqual({ ...dropped, pos: 9, hash: second.hash })
    expect(isAsWritten(last, first)).toBe(true)
    expect(isAsWritten(first, second)).toBe(true)
    expect(isAsWritten(last, second)).toBe(false)
    expect(isAsWritten({ ...last, pos: 6 }, first)).toBe(false)
    expect(isAsWritten(last, { ...first, by: 'eve' })).toBe(false)
  })
})
