import {
  ConfigurationError,
  LedgerConflictError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { applyRetention, redact, watchLedger } from '@tallystick/ledger'
import { firstValueFrom, take, toArray } from 'rxjs'
import { expect } from 'vitest'

/** A store of its own for a test. */
export interface PackedRowBed {
  readonly open: () => Ledger
  /** The rows of a query, in the SQL of both stores, with `@` before the name of each table. */
  readonly rows: (statement: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
}

const runId: RunId = sampleRunId(1)
const facts = everyFact(runId)
const lazy = { durability: 'lazy' } as const

/** A text of so many deltas: `d1 `, `d2 `, … each recorded a millisecond after the one before it. */
function textOf(count: number, after: number): readonly RuntimeEvent[] {
  const deltas = Array.from({ length: count }, (_, index) => {
    return { ...facts.assistant_text_delta, text: `d${index + 1} ` }
  })
  return stamped(runId, deltas, { afterSeq: after }).map((event, index) => ({
    ...event,
    at: event.at + index,
  }))
}

/** A run that has begun, as far as its text. */
const begun: readonly RuntimeEvent[] = stamped(runId, [
  facts.run_started,
  facts.input_received,
  facts.model_call_started,
  facts.assistant_started,
])

/** Appends the beginning of a run and a text of deltas to it, which are events 5 and on. */
async function written(ledger: Ledger, count: number): Promise<readonly RuntimeEvent[]> {
  const text = textOf(count, begun.length)
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, begun, lazy)
  await ledger.append(runId, { expectedSeq: begun.length, epoch: 1 }, text, lazy)
  return [...begun, ...text]
}

const eventRows = `select coalesce(first_seq, seq) as first, seq as last from @event order by seq`

/** What has to hold of rows that hold several deltas, on every store, by claim. */
export const packedRowCases: Readonly<Record<string, (bed: PackedRowBed) => Promise<void>>> = {
  async 'hold the neighbouring deltas of one append, at most 256 each, and are read as single events'(bed) {
    const ledger = bed.open()
    const events = await written(ledger, 600)
    // The two events before them share a row.
    expect((await bed.rows(eventRows)).slice(3)).toEqual([
      { first: 5, last: 260 },
      { first: 261, last: 516 },
      { first: 517, last: 604 },
    ])
    expect(await Array.fromAsync(ledger.read(runId))).toEqual(events)
    for (const [fromSeq, toSeq] of [
      [1, 5],
      [5, 5],
      [6, 300],
      [260, 261],
      [300, 604],
      [604, 700],
    ] as const) {
      expect(await Array.fromAsync(ledger.read(runId, { fromSeq, toSeq }))).toEqual(
        events.slice(fromSeq - 1, toSeq),
      )
    }
    expect(await Array.fromAsync(ledger.find({ types: ['assistant_text_delta'] }))).toEqual(events.slice(4))
    await ledger.close()
  },

  async 'are found by the time of each event'(bed) {
    const ledger = bed.open()
    const events = await written(ledger, 300)
    const at = events[10]!.at
    for (const [fromAt, toAt] of [
      [at, at],
      [at, at + 3],
      [at + 100, Number.MAX_SAFE_INTEGER],
      [0, at - 1],
    ] as const) {
      expect(await Array.fromAsync(ledger.find({ fromAt, toAt }))).toEqual(
        events.filter((event) => event.at >= fromAt && event.at <= toAt),
      )
    }
    await ledger.close()
  },

  async 'are followed by a tail from any of their events on'(bed) {
    const ledger = bed.open()
    const events = await written(ledger, 5)
    // In Postgres a tail ends in front of what a transaction of another test may still come before.
    const all = await firstValueFrom(watchLedger(ledger).pipe(take(events.length), toArray()))
    expect(all.map(({ event }) => event)).toEqual(events)
    expect(new Set(all.map(({ cursor }) => cursor)).size).toBe(events.length)
    for (const [index, { cursor }] of all.entries()) {
      const rest = await Array.fromAsync(ledger.tail(cursor))
      expect(rest).toEqual(all.slice(index + 1))
    }
    const inRow = all[6]!.cursor
    const beyond = inRow.replace(/\.\d+-/, '.5-')
    expect(beyond).not.toBe(inRow)
    await expect(Array.fromAsync(ledger.tail(beyond))).rejects.toThrow(ConfigurationError)
    await ledger.close()
  },

  async 'are the same when their append is repeated, and refuse another one in its place'(bed) {
    const ledger = bed.open()
    const events = await written(ledger, 20)
    const text = events.slice(4)
    const expected = { expectedSeq: 4, epoch: 1 }
    expect(await ledger.append(runId, expected, text, lazy)).toEqual({ seq: 24, epoch: 1 })
    const other = text.map((event, index) => (index === 9 ? { ...event, text: 'other' } : event))
    await expect(ledger.append(runId, expected, other as RuntimeEvent[], lazy)).rejects.toThrow(
      LedgerConflictError,
    )
    await expect(ledger.append(runId, expected, text.slice(0, 7), lazy)).rejects.toThrow(LedgerConflictError)
    expect(await Array.fromAsync(ledger.read(runId))).toEqual(events)
    await ledger.close()
  },

  async 'lose what they say together, on record, and keep their numbers'(bed) {
    const ledger = bed.open()
    const events = await written(ledger, 300)
    expect(await redact(ledger, runId, [7], { by: 'me', reason: 'asked' })).toBe(256)
    const left = await Array.fromAsync(ledger.read(runId))
    expect(left.map(({ seq, type }) => ({ seq, type }))).toEqual(
      events.map(({ seq, type }) => ({ seq, type })),
    )
    expect(left.filter(({ removed }) => removed !== undefined).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 256 }, (_, index) => 5 + index),
    )
    expect(left.slice(260)).toEqual(events.slice(260))
    expect(await bed.rows('select from_seq as first, to_seq as last from @removal')).toEqual([
      { first: 5, last: 260 },
    ])
    expect(await redact(ledger, runId, [8, 260], { by: 'me', reason: 'again' })).toBe(0)
    await ledger.close()
  },

  async 'are counted event by event where rules of retention take them away'(bed) {
    const ledger = bed.open()
    await written(ledger, 300)
    const end = stamped(runId, [facts.cancel_requested], { afterSeq: 304 })
    await ledger.append(runId, { expectedSeq: 304, epoch: 1 }, end, lazy)
    expect(await applyRetention(ledger, { deltasMs: 0 }, { now: Number.MAX_SAFE_INTEGER })).toMatchObject({
      deltas: 0,
    })
    const finished = stamped(runId, [{ ...facts.run_finished }], { afterSeq: 305 })
    await ledger.append(runId, { expectedSeq: 305, epoch: 1 }, finished, lazy)
    const dry = await applyRetention(ledger, { deltasMs: 0 }, { now: Number.MAX_SAFE_INTEGER, dryRun: true })
    expect(dry.deltas).toBe(300)
    expect(await applyRetention(ledger, { deltasMs: 0 }, { now: Number.MAX_SAFE_INTEGER })).toEqual(dry)
    await ledger.close()
  },

  async 'are shown one row an event by a view, for those who ask in SQL'(bed) {
    const ledger = bed.open()
    const events = await written(ledger, 5)
    const shown = await bed.rows('select seq, type, at, body from @each_event order by seq')
    expect(shown.map(({ seq, type, at }) => ({ seq, type, at }))).toEqual(
      events.map(({ seq, type, at }) => ({ seq, type, at })),
    )
    const said = shown.map(({ body }) => JSON.parse(String(body)) as { text?: string; attempt?: number })
    expect(said.slice(4).map(({ text }) => text)).toEqual(['d1 ', 'd2 ', 'd3 ', 'd4 ', 'd5 '])
    expect(said.slice(4).map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1])
    await redact(ledger, runId, [6], { by: 'me', reason: 'asked' })
    const left = await bed.rows('select body from @each_event order by seq')
    expect(left.map(({ body }) => body === null)).toEqual([...Array(4).fill(false), ...Array(5).fill(true)])
    await ledger.close()
  },
}
