import { ConfigurationError, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import {
  decodedEvents,
  keyIdOfRow,
  withDecodingContext,
  type DecodingSource,
} from '../src/content/event/decoded-events.ts'
import { storedBody } from '../src/content/event/stored-body.ts'
import { storableRows } from '../src/content/event/stored-rows.ts'
import { Sealer } from '../src/content/payload/encrypted-bytes.ts'
import { largeBytesMin } from '../src/content/payload/externalized-payload.ts'
import { genesisHash } from '../src/record/chain.ts'
import { storedRow, type EventRow } from '../src/record/event-row.ts'
import type { StoredRemoval } from '../src/record/removal.ts'
import { segmentedType } from '../src/record/segments/segmented-body.ts'

const runId = sampleRunId(1)
const facts = everyFact(runId)
const sealer = new Sealer({ id: 'k1', bytes: new Uint8Array(32).fill(7) })
const digest = new Uint8Array(32)
const salt = new Uint8Array(16)

const [usage, progress] = stamped(runId, [
  facts.usage_updated,
  { ...facts.tool_progress, data: 'x'.repeat(largeBytesMin) },
]).map((event): RuntimeEvent => ({ ...event, turn: 1 })) as [RuntimeEvent, RuntimeEvent]

function rowOf(
  { seq, type, at, toolCallId }: RuntimeEvent,
  body: Uint8Array | null,
  first_seq: number | null = null,
): EventRow {
  return {
    ...{
      pos: seq,
      run_id: runId,
      first_seq,
      seq,
      epoch: 1,
      type,
      v: 1,
      turn: 1,
      tool_call_id: toolCallId ?? null,
      at,
    },
    ...{ once_key: null, body_commit: digest, hash: digest, salt: body && salt, body },
  }
}

const removal = (fromSeq: number, toSeq: number, by = 'me'): StoredRemoval => ({
  ...{ pos: 1, runId, fromSeq, toSeq, kind: 'redacted', at: 1, by, kept: '{}', hash: genesisHash },
})

/** A source that answers nothing, and what was asked of it. */
function sourceOf(change: Partial<DecodingSource> = {}): {
  readonly source: DecodingSource
  readonly asked: readonly unknown[]
} {
  const asked: unknown[] = []
  const source: DecodingSource = {
    keyring: undefined,
    contents: async (digests) => (asked.push(['contents', ...digests]), new Map()),
    histories: async (names) => (asked.push(['histories', ...names]), new Map()),
    removals: async (...range) => (asked.push(['removals', ...range]), []),
    ...change,
  }
  return { source, asked }
}

const both = stamped(runId, [facts.usage_updated, facts.usage_updated]).map((event): RuntimeEvent => ({
  ...event,
  turn: 1,
})) as [RuntimeEvent, RuntimeEvent]
const segmentedRow: EventRow = {
  ...rowOf(both[1], storableRows(both, sealer)[0]?.bytes ?? null, 1),
  type: segmentedType,
}

describe('what rows need beside their bytes', () => {
  it('is nothing where all are plain: they are returned as they are', async () => {
    const rows = [rowOf(usage, storedBody(usage).bytes)]
    const { source, asked } = sourceOf()
    expect(await withDecodingContext(rows, source)).toBe(rows)
    expect(asked).toEqual([])
  })

  it('is asked for those that are not plain, and the others stay as they are', async () => {
    const large = storedBody(progress)
    const rows = [rowOf(usage, storedBody(usage).bytes), rowOf(progress, large.bytes)]
    const { source, asked } = sourceOf()
    const [plain, referring] = await withDecodingContext(rows, source)
    expect(plain).toBe(rows[0])
    expect(referring?.decoding).toMatchObject({ hasKeys: false })
    expect(asked).toEqual([['contents', large.contents[0]?.digest]])
  })

  it('is asked once for what several rows refer to', async () => {
    const { bytes, contents } = storedBody(progress)
    const again = { ...progress, seq: 3 }
    const { source, asked } = sourceOf()
    await withDecodingContext([rowOf(progress, bytes), rowOf(again, bytes)], source)
    expect(asked).toEqual([['contents', contents[0]?.digest]])
  })

  it('is no removal where a row is sealed, and nothing of it is gone', async () => {
    for (const row of [segmentedRow, rowOf(usage, storedBody(usage, sealer).bytes)]) {
      const { source, asked } = sourceOf()
      const [decoded] = await withDecodingContext([row], source)
      expect(decoded?.decoding).toBeDefined()
      expect(decoded?.removal).toBeUndefined()
      expect(asked).toEqual([])
    }
  })

  it('is the first removal that covers the whole row, where its payload is gone', async () => {
    const removals = [
      removal(1, 3, 'a'),
      removal(3, 3, 'b'),
      removal(2, 4, 'c'),
      removal(1, 9, 'd'),
      removal(5, 9, 'e'),
    ]
    const { source } = sourceOf({ removals: async () => removals })
    const gone = (first: number | null, seq: number): EventRow => rowOf({ ...usage, seq }, null, first)
    const rows = [gone(null, 3), gone(2, 4), gone(null, 4), gone(3, 5), gone(null, 10), gone(null, 1)]
    const found = (await withDecodingContext(rows, source)).map((row) => row.removal?.by)
    expect(found).toEqual(['a', 'c', 'c', 'd', undefined, 'a'])
    const others = sourceOf({ removals: async () => [{ ...removal(1, 9), runId: sampleRunId(2) }] })
    expect(await withDecodingContext([gone(null, 3)], others.source)).toEqual([gone(null, 3)])
  })

  it('is asked of a run from the first event of its rows to the last', async () => {
    const { source, asked } = sourceOf()
    await withDecodingContext(
      [rowOf({ ...usage, seq: 9 }, null, 7), rowOf({ ...usage, seq: 4 }, null)],
      source,
    )
    expect(asked).toEqual([['removals', runId, 4, 9]])
  })

  it('is a key by the id that a row names, once for all rows, and none where the bytes are damaged', async () => {
    const ids: string[] = []
    const keyring = {
      key: async (id: string) => (ids.push(id), new Uint8Array(32).fill(7)),
      keyOf: () => Promise.reject(new Error('not asked')),
      destroy: () => Promise.reject(new Error('not asked')),
    }
    const sealed = rowOf(usage, storedBody(usage, sealer).bytes)
    const damaged = rowOf({ ...usage, seq: 3 }, Buffer.from([1, 0, 0]))
    const { source } = sourceOf({ keyring })
    const [first, second, third] = await withDecodingContext([sealed, segmentedRow, damaged], source)
    expect(ids).toEqual(['k1'])
    expect(decodedEvents(storedRow(first as EventRow))).toEqual([usage])
    expect(decodedEvents(storedRow(second as EventRow))).toEqual(both)
    expect(keyIdOfRow(damaged)).toBeUndefined()
    expect(() => decodedEvents(storedRow(third as EventRow))).toThrow(`Run ${runId} is damaged at seq 3`)
  })
})

describe('what a row says', () => {
  it('is damage where a content of it is another one, or has changed', async () => {
    const { bytes, contents } = storedBody(progress)
    const name = contents[0]?.digest ?? ''
    const read = async (content?: Uint8Array): Promise<readonly RuntimeEvent[]> => {
      const { source } = sourceOf({ contents: async () => new Map(content && [[name, content]]) })
      const [row] = await withDecodingContext([rowOf(progress, bytes)], source)
      return decodedEvents(storedRow(row as EventRow))
    }
    expect(await read(Buffer.from('x'.repeat(largeBytesMin)))).toEqual([progress])
    await expect(read(Buffer.from('y'.repeat(largeBytesMin)))).rejects.toThrow(
      `the content ${name} has changed`,
    )
    await expect(read()).rejects.toThrow(`no content ${name}`)
  })

  it('is damage where its form is not known', () => {
    for (const body of [Buffer.from([2, 0, 0, 0, 0]), Buffer.from(' {}')]) {
      expect(() => decodedEvents(storedRow(rowOf(usage, body)))).toThrow(
        `Run ${runId} is damaged at seq 1: a form that is not known`,
      )
    }
  })

  it('is damage by its first event where a row of several has no reason to be gone', () => {
    const row = storedRow(rowOf({ ...usage, type: 'assistant_text_delta', seq: 5 } as RuntimeEvent, null, 3))
    expect(() => decodedEvents(row)).toThrow(`Run ${runId} is damaged at seq 3: nothing says why`)
  })
})

describe('what a run begins with', () => {
  const carried = (messages: number, change: object = {}): RuntimeEvent => {
    const said = Array.from({ length: messages }, (_, index) => sampleMessage(`message ${index}`))
    const [event] = stamped(runId, [{ ...facts.history_carried, messages: said, ...change }])
    return event as RuntimeEvent
  }

  it('is kept apart from one message on, and is in the body where there is no message', () => {
    for (const sealing of [undefined, sealer]) {
      expect(storedBody(carried(0), sealing).history).toBeUndefined()
      expect(storedBody(carried(1), sealing).history).toMatchObject({ length: 1 })
      expect(storedBody(carried(3), sealing).history).toMatchObject({ length: 3 })
    }
    expect(JSON.parse(Buffer.from(storedBody(carried(0)).bytes).toString())).toMatchObject({ messages: [] })
  })

  it('names the place of a field beside the messages that JSON cannot carry', () => {
    const refused = (): unknown => storedBody(carried(1, { missing: Number.NaN }))
    expect(refused).toThrow(ConfigurationError)
    expect(refused).toThrow(/^Event 1 \(history_carried\) of run .* cannot be stored: \$\.missing is/)
  })
})
