import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import type { RuntimeEvent } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { commitmentOf, genesisHash, linkHash } from '../src/record/chain.ts'
import { contentFault, genesis, linkFault, type Link } from '../src/record/link-check.ts'
import { bodyBytes, eventOf, type StoredRow, type StoredSegment } from '../src/record/stored-row.ts'
import { envelopeOf } from '../src/record/envelope.ts'

const runId = sampleRunId(1)
const [event] = stamped(runId, [everyFact(runId).tool_result]) as readonly [RuntimeEvent]
const salt = Buffer.alloc(16, 5)

function stored(change: object = {}): StoredRow {
  const body = bodyBytes(event)
  const bodyCommit = commitmentOf(salt, body)
  const hash = linkHash(genesisHash, event, bodyCommit)
  const onceKey = `tool_result ${event.toolCallId}`
  return { ...envelopeOf(event), pos: 1, onceKey, bodyCommit, hash, payload: { salt, body }, ...change }
}

describe('a stored event', () => {
  it('is sound as it was written, and says what it said', () => {
    const sound = stored()
    expect(linkFault(genesis, sound)).toBeUndefined()
    expect(contentFault(sound, event)).toBeUndefined()
    expect(eventOf(sound as StoredSegment, bodyBytes(event))).toEqual(event)
  })

  // What flipped bits have been read as: every column as another type than it has.
  it.each([
    ['pos', { pos: null }],
    ['epoch', { epoch: 'one' }],
    ['turn', { turn: 0.5 }],
    ['v', { v: undefined }],
    ['at', { at: Buffer.alloc(1) }],
    ['type', { type: null }],
    ['runId', { runId: 7 }],
    ['toolCallId', { toolCallId: 7 }],
    ['onceKey', { onceKey: Buffer.alloc(1) }],
    ['body_commit', { bodyCommit: 'text' }],
    ['hash', { hash: 123 }],
    ['salt', { payload: { salt: 123, body: Buffer.from('{}') } }],
    ['body', { payload: { salt, body: '{}' } }],
  ])('whose %s is read as another type is at fault, and nothing throws', (what, change) => {
    expect(linkFault(genesis, stored(change))).toMatchObject({ what })
  })

  it.each([
    ['a row of one event that says it holds several', { firstSeq: 1, seq: 1 }, 1],
    ['a row of more events than a reader makes of one', { firstSeq: 1, seq: 257 }, 257],
    [
      'a row of as many events as no memory holds',
      { firstSeq: 1, seq: Number.MAX_SAFE_INTEGER },
      2 ** 53 - 1,
    ],
  ])('is at fault as %s', (_what, change, found) => {
    expect(linkFault(genesis, stored(change))).toEqual({
      what: 'first_seq',
      expected: '2 to 256 events in a row',
      found: String(found),
    })
    expect(linkFault(genesis, stored({ firstSeq: 1, seq: 256 }))).toMatchObject({ what: 'hash' })
    expect(linkFault(genesis, stored({ firstSeq: 1, seq: 2 }))).toMatchObject({ what: 'hash' })
  })

  it.each([
    ['seq', {}, { seq: 1 }],
    ['hash', {}, { hash: Buffer.alloc(32, 1) }],
    ['epoch', {}, { epoch: 2 }],
    ['pos', {}, { pos: 1 }],
  ])('is at fault in its %s after a link that does not fit', (what, change, link) => {
    const before: Link = { ...genesis, ...link }
    expect(linkFault(before, stored(change))).toMatchObject({ what })
  })

  it('is at fault where the fact that may be recorded once is not the one that it states', () => {
    expect(contentFault(stored({ onceKey: undefined }), event)).toEqual({
      what: 'once_key',
      expected: `tool_result ${event.toolCallId}`,
      found: 'none',
    })
    const [usage] = stamped(runId, [everyFact(runId).usage_updated]) as readonly [RuntimeEvent]
    expect(contentFault(stored({ onceKey: 'a fact' }), usage)).toEqual({
      what: 'once_key',
      expected: 'none',
      found: 'a fact',
    })
    expect(contentFault(stored({ onceKey: undefined }), usage)).toBeUndefined()
  })

  it.each([
    [{ runId: 'no run' }, { what: 'run_id', expected: 'a run id', found: '"no run"' }],
    [{ toolCallId: 'no call' }, { what: 'tool_call_id', expected: 'a tool call id', found: '"no call"' }],
  ])('is at fault where it is of %j, though its chain holds', (change, fault) => {
    const named = { ...event, ...change } as RuntimeEvent
    const { bodyCommit } = stored()
    const row = stored({ ...change, hash: linkHash(genesisHash, named, bodyCommit) })
    expect(linkFault(genesis, row)).toEqual(fault)
  })

  it('keeps to its envelope whatever its body claims', () => {
    const body = Buffer.from('{"seq":99,"runId":"another","outcome":"success"}')
    expect(eventOf(stored() as StoredSegment, body)).toMatchObject({ seq: 1, runId, outcome: 'success' })
  })
})
