import { randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { type Json } from '@tallystick/core/vocabulary'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { largeBytesMin } from '../src/content/payload/externalized-payload.ts'
import { decodedEvents, withDecodingContext } from '../src/content/event/decoded-events.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import { storedBody, type StoredBody } from '../src/content/event/stored-body.ts'
import type { HistoryPiece, StoredHistory } from '../src/content/payload/stored-history.ts'
import { redactedPayload } from '../src/content/payload/redacted-payload.ts'
import { storedRow, type EventRow } from '../src/record/event-row.ts'
import { envelopeOf } from '../src/record/envelope.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const runId = sampleRunId(1)
const subject = { id: 'k1', bytes: randomBytes(32) }

/** Around the size from which a text is kept apart, in texts of one, two, three and four bytes a character. */
const largeText = fc
  .tuple(fc.constantFrom('a', 'é', '語', '🧾'), fc.integer({ min: -2, max: 2 }), fc.string())
  .map(([unit, more, end]) => unit.repeat(Math.ceil(largeBytesMin / Buffer.byteLength(unit)) + more) + end)
const text = fc.oneof(anyText(), largeText, fc.constant('\uD800'.repeat(largeBytesMin)))
const key = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'length', '0', 'constructor'))
const anyJson = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value

const progress = anyJson.map((data): RuntimeEvent => {
  const [event] = stamped(runId, [{ ...everyFact(runId).tool_progress, data }])
  return event as RuntimeEvent
})

function rowOf(event: RuntimeEvent, { bytes }: StoredBody): EventRow {
  const { runId, toolCallId = null, seq, epoch, type, v, turn, at } = event
  const none = new Uint8Array(32)
  return {
    ...{
      pos: 1,
      run_id: runId,
      first_seq: null,
      seq,
      epoch,
      type,
      v,
      turn,
      tool_call_id: toolCallId,
      at,
      once_key: null,
    },
    ...{ body_commit: none, hash: none, salt: none, body: bytes },
  }
}

function piecesOf(history: StoredHistory): ReadonlyMap<string, HistoryPiece> {
  return new Map([[history.name, history.piece(0)]])
}

async function opened(
  event: RuntimeEvent,
  body: StoredBody,
  keys?: ReadonlyMap<string, Uint8Array>,
): Promise<RuntimeEvent> {
  const [ready] = await withDecodingContext([rowOf(event, body)], {
    keyring: keys && {
      key: (id) => Promise.resolve(keys.get(id)),
      keyOf: () => Promise.reject(new Error('not asked')),
      destroy: () => Promise.reject(new Error('not asked')),
    },
    contents: (digests) =>
      Promise.resolve(
        new Map(
          body.contents
            .filter(({ digest }) => digests.includes(digest))
            .map((each) => [each.digest, each.bytes]),
        ),
      ),
    histories: () => Promise.resolve(body.history ? piecesOf(body.history) : new Map()),
    removals: () => Promise.resolve([]),
  })
  const [decoded] = decodedEvents(storedRow(ready as EventRow))
  return decoded as RuntimeEvent
}

describe('what an event says, as bytes of a store', () => {
  it('is read as it was said, whatever it is, and is the same bytes when it is written again', async () => {
    await fc.assert(
      fc.asyncProperty(progress, fc.boolean(), async (event, isSealed) => {
        const sealer = isSealed ? new Sealer(subject) : undefined
        const body = storedBody(event, sealer)
        expect(storedBody(event, sealer)).toEqual(body)
        expect(await opened(event, body, new Map([[subject.id, subject.bytes]]))).toEqual(event)
      }),
      { numRuns: tries(200) },
    )
  })

  it('says nothing without the key: only facts are left, and no byte of the text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ minLength: 12 }), largeText), async (said) => {
        const [event] = stamped(runId, [{ ...everyFact(runId).tool_progress, data: { said } }]) as [
          RuntimeEvent,
        ]
        const body = storedBody(event, new Sealer(subject))
        for (const bytes of [body.bytes, ...body.contents.map((content) => content.bytes)]) {
          expect(Buffer.from(bytes).includes(said.slice(0, 64))).toBe(false)
        }
        const left = { ...redactedPayload(event), ...envelopeOf(event) }
        expect(await opened(event, body, new Map())).toEqual({ ...left, removed: { kind: 'erased' } })
        expect(await opened(event, body)).toEqual({ ...left, removed: { kind: 'sealed' } })
      }),
      { numRuns: tries(50) },
    )
  })
})

it('keeps a text of 16 KiB apart, under the digest of its bytes, and one that is a byte shorter in its place', () => {
  const bodyOf = (said: string): StoredBody => {
    const [event] = stamped(runId, [{ ...everyFact(runId).tool_progress, data: [said] }]) as [RuntimeEvent]
    return storedBody(event)
  }
  const [large, small] = ['é'.repeat(largeBytesMin / 2), `${'é'.repeat(largeBytesMin / 2 - 1)}x`].map(bodyOf)
  expect(large?.bytes.length).toBeLessThan(200)
  expect(large?.contents).toEqual([
    { digest: expect.stringMatching(/^[0-9a-f]{64}$/), bytes: Buffer.from('é'.repeat(largeBytesMin / 2)) },
  ])
  expect(small?.contents).toEqual([])
})

describe('a sealed body', () => {
  const [event, other] = stamped(runId, [
    { ...everyFact(runId).tool_progress, data: 'x'.repeat(largeBytesMin) },
    { ...everyFact(runId).tool_progress, data: 'y' },
  ]) as [RuntimeEvent, RuntimeEvent]
  const body = storedBody(event, new Sealer(subject))
  const keys = new Map([[subject.id, subject.bytes]])

  it('cannot be put in the place of another', async () => {
    await expect(opened(other, body, keys)).rejects.toThrow(LedgerDamagedError)
  })

  it('is found damaged where a byte of it, or of a content, has changed', async () => {
    const sealedFrom = body.bytes.length - 40
    for (let place = sealedFrom; place < body.bytes.length; place++) {
      const bytes = Buffer.from(body.bytes)
      bytes[place] = (bytes[place] ?? 0) ^ 1
      await expect(opened(event, { ...body, bytes }, keys)).rejects.toThrow(LedgerDamagedError)
    }
    const [content] = body.contents
    const changed = Buffer.from(content?.bytes ?? [])
    changed[100] = (changed[100] ?? 0) ^ 1
    const contents = [{ digest: content?.digest ?? '', bytes: changed }]
    await expect(opened(event, { ...body, contents }, keys)).rejects.toThrow(LedgerDamagedError)
    await expect(opened(event, { ...body, contents: [] }, keys)).rejects.toThrow(LedgerDamagedError)
  })
})
