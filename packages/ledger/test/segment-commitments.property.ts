import crypto, { createHash } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { segmentedCommitment } from '../src/record/segments/segment-commitments.ts'

/** As `segment-commitments.ts` describes it, written out for one segment after the other. */
function described(salt: Uint8Array, heads: Uint8Array, segments: readonly Uint8Array[]): Buffer {
  const digests = segments.map((line, index) => {
    const block = Buffer.concat([Buffer.of(4), salt, Buffer.of(Math.floor(index / 4))])
    const salts = createHash('sha512').update(block).digest()
    const own = salts.subarray(16 * (index % 4), 16 * (index % 4) + 16)
    return createHash('sha256')
      .update(Buffer.concat([Buffer.of(5), own, line]))
      .digest()
  })
  return Buffer.concat([heads, ...digests])
}

const line = fc.oneof(
  fc.constantFrom('', 'null', '{}', ',', '"é"', '{"text":"a,"}', 'x'.repeat(16), 'x'.repeat(17)),
  fc.string({ maxLength: 40 }).map((text) => JSON.stringify(text)),
  fc.integer({ min: 60_000, max: 70_000 }).map((length) => 'y'.repeat(length)),
)
const heads = fc.oneof(
  fc.constantFrom('', '{', 'h'.repeat(15), 'h'.repeat(16), 'h'.repeat(17), '{"heads":["a","b"],"segments":['),
)
const salt = fc.uint8Array({ minLength: 16, maxLength: 16 })
/** What may end a body: only the first is how one ends. */
const tail = fc.constantFrom(']}', ']}', ']}', '', ']', '}]', ']} ', ']}\n', ' ]}', 'ab', ']}]}')

describe('the commitment to the segments of a row', () => {
  it('is what its description says, whatever the lines are, and undefined of another body', () => {
    fc.assert(
      fc.property(
        salt,
        heads,
        fc.array(line, { minLength: 1, maxLength: 12 }),
        tail,
        (of, first, lines, end) => {
          const body = Buffer.from(`${first}\n${lines.join(',\n')}\n${end}`)
          const copy = Buffer.from(body)
          // A line that ends with a comma is followed by another one, and a text with no such line ends there.
          const isWhole = end === ']}' && !lines.at(-1)?.endsWith(',')
          const found = segmentedCommitment({ salt: of, body })
          const due = described(
            of,
            Buffer.from(first),
            lines.map((each) => Buffer.from(each)),
          )
          expect(found && Buffer.from(found).toString('hex')).toBe(isWhole ? due.toString('hex') : undefined)
          expect(body.equals(copy)).toBe(true)
        },
      ),
      { numRuns: tries(2_000) },
    )
  })

  it('hashes each segment of a whole body once, and the salts of four segments together', () => {
    const hash = vi.spyOn(crypto, 'hash')
    syncBuiltinESMExports()
    onTestFinished(() => {
      hash.mockRestore()
      syncBuiltinESMExports()
    })
    for (const [segments, salts] of [
      [1, 1],
      [4, 1],
      [5, 2],
    ] as const) {
      hash.mockClear()
      const lines = Array.from({ length: segments }, (_, index) => `${index}`)
      const body = Buffer.from(`{"heads":[0,0,0],"segments":[\n${lines.join(',\n')}\n]}`)
      expect(segmentedCommitment({ salt: new Uint8Array(16), body })).toBeDefined()
      const calls = Object.groupBy(hash.mock.calls, ([algorithm]) => algorithm)
      expect([calls['sha256']?.length, calls['sha512']?.length]).toEqual([segments, salts])
    }
  })
})
