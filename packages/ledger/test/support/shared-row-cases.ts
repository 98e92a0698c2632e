import { LedgerConflictError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleCallId, sampleRunId, stamped } from '@tallystick/core/testing'
import type { EventQuery, EventType, Fact } from '@tallystick/core/vocabulary'
import { applyRetention, redact, verifyLedger, verifyRun, watchLedger } from '@tallystick/ledger'
import { firstValueFrom, take, toArray } from 'rxjs'
import { expect } from 'vitest'
import { driveLookingRun } from './looking-run.ts'
import type { PackedRowBed } from './packed-row-cases.ts'
import { chainFaults } from './postgres-chain.ts'

/** A store of its own for a test, which an attacker may change as well. */
export interface SharedRowBed extends PackedRowBed {
  readonly tamper: (statement: string) => Promise<void>
}

const [runId, otherId] = [sampleRunId(1), sampleRunId(2)]
const facts = everyFact(runId)
const lazy = { durability: 'lazy' } as const
const call = (ordinal: number): { readonly toolCallId: ReturnType<typeof sampleCallId> } => ({
  toolCallId: sampleCallId(runId, ordinal),
})

/** A turn as a model that is fast makes it: in one append after the start of the run. */
const turn: readonly Fact[] = [
  facts.model_call_started,
  facts.assistant_started,
  ...['How ', 'warm ', 'is it?'].map((text) => ({ ...facts.assistant_text_delta, text })),
  { ...facts.tool_input_delta, ...call(1) },
  { ...facts.tool_request_ready, ...call(1) },
  { ...facts.tool_request_ready, ...call(2) },
  facts.usage_updated,
  facts.assistant_message_finished,
  facts.tool_requests_collected,
  { ...facts.tool_started, ...call(1) },
  { ...facts.tool_started, ...call(2) },
]

/** Appends a run of a turn, with events from 3 on in one append, each recorded a millisecond after the one before. */
async function written(ledger: Ledger): Promise<readonly RuntimeEvent[]> {
  const start = stamped(runId, [facts.run_started, facts.input_received])
  const said = stamped(runId, turn, { afterSeq: start.length })
  const events = [...start, ...said].map((event, index) => ({ ...event, at: event.at + index, turn: 1 }))
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events.slice(0, 2), lazy)
  await ledger.append(runId, { expectedSeq: 2, epoch: 1 }, events.slice(2), lazy)
  return events
}

/** Appends facts after those that a run has. */
async function append(ledger: Ledger, more: readonly Fact[]): Promise<void> {
  const { seq } = (await ledger.head(runId)) ?? { seq: 0 }
  const events = stamped(runId, more, { afterSeq: seq }).map((event) => ({ ...event, turn: 1 }))
  await ledger.append(runId, { expectedSeq: seq, epoch: 1 }, events, lazy)
}

const seqsOf = (events: readonly RuntimeEvent[]): readonly number[] => events.map(({ seq }) => seq)
const removing = { by: 'me', reason: 'asked' }
const types: readonly EventType[] = ['tool_started', 'assistant_text_delta', 'run_started', 'usage_updated']

/** What has to hold of rows that hold events of several types, on every store, by claim. */
export const sharedRowCases: Readonly<Record<string, (bed: SharedRowBed) => Promise<void>>> = {
  async 'hold the events of an append, and are read as single events from any of them to any other'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    expect(await bed.rows('select first_seq as first, seq as last, type from @event order by seq')).toEqual([
      { first: null, last: 1, type: 'run_started' },
      { first: null, last: 2, type: 'input_received' },
      { first: 3, last: events.length, type: 'several' },
    ])
    for (let fromSeq = 1; fromSeq <= events.length; fromSeq++) {
      for (let toSeq = fromSeq; toSeq <= events.length; toSeq++) {
        expect(await Array.fromAsync(ledger.read(runId, { fromSeq, toSeq }))).toEqual(
          events.slice(fromSeq - 1, toSeq),
        )
      }
    }
    expect(await chainFaults(ledger, runId)).toEqual([])
    await ledger.close()
  },

  async 'are searched event by event: by call, type, turn and time, and all of them together'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    // The same call in a row of its own, and in another run, as a fork has it.
    await append(ledger, [
      { ...facts.tool_result, ...call(1), content: [{ type: 'text', text: 'x'.repeat(40_000) }] },
    ])
    const forked = stamped(otherId, [everyFact(otherId).run_started, { ...facts.tool_result, ...call(2) }])
    await ledger.append(otherId, { expectedSeq: 0, epoch: 1 }, forked, lazy)
    const all = [...(await Array.fromAsync(ledger.read(runId))), ...forked]
    const { at } = events[6]!
    const queries: readonly EventQuery[] = [
      ...[1, 2, 3].map((ordinal) => ({ toolCallId: call(ordinal).toolCallId })),
      { toolCallId: call(1).toolCallId, types: ['tool_started'] },
      { toolCallId: call(1).toolCallId, turn: 2 },
      { types, runId },
      { types },
      { turn: 1, runId },
      { turn: 1, types: ['usage_updated'] },
      { fromAt: at, toAt: at },
      { runId, fromAt: at, toAt: at + 2, types },
      { runId, types: ['cancel_requested'] },
    ]
    for (const query of queries) {
      const { fromAt = 0, toAt = Infinity } = query
      const due = all.filter(
        (event) =>
          (query.runId ?? event.runId) === event.runId &&
          (query.toolCallId ?? event.toolCallId) === event.toolCallId &&
          (query.turn ?? event.turn) === event.turn &&
          (query.types?.includes(event.type) ?? true) &&
          event.at >= fromAt &&
          event.at <= toAt,
      )
      expect([query, await Array.fromAsync(ledger.find(query))]).toEqual([query, due])
    }
    await ledger.close()
  },

  async 'are followed by a tail from any of their events on'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    // In Postgres a tail ends in front of what a transaction of another test may still come before.
    const all = await firstValueFrom(watchLedger(ledger).pipe(take(events.length), toArray()))
    expect(all.map(({ event }) => event)).toEqual(events)
    for (const [index, { cursor }] of all.entries()) {
      expect(await Array.fromAsync(ledger.tail(cursor))).toEqual(all.slice(index + 1))
    }
    await ledger.close()
  },

  async 'are the same when their append is repeated, and refuse another one in its place'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    const said = events.slice(2)
    const expected = { expectedSeq: 2, epoch: 1 }
    expect(await ledger.append(runId, expected, said, lazy)).toEqual({ seq: events.length, epoch: 1 })
    const other = said.map((event, index) => (index === 4 ? { ...event, text: 'other' } : event))
    for (const wrong of [other as RuntimeEvent[], said.slice(0, 7)]) {
      await expect(ledger.append(runId, expected, wrong, lazy)).rejects.toThrow(LedgerConflictError)
    }
    expect(await Array.fromAsync(ledger.read(runId))).toEqual(events)
    await ledger.close()
  },

  async 'state a fact once, wherever the second one stands'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    const started = { ...facts.tool_started, ...call(2) }
    const large = { ...facts.tool_result, content: [{ type: 'text', text: 'x'.repeat(40_000) }] } as const
    const named = `tool_started ${call(2).toolCallId} ${facts.tool_started.attempt}`
    for (const more of [[started], [facts.usage_updated, started], [facts.usage_updated, started, started]]) {
      await expect(append(ledger, more)).rejects.toThrow(`has ${named} on record already`)
    }
    // In a row of its own first, then beside others; and beside others first, then in a row of its own.
    await append(ledger, [{ ...large, ...call(1) }])
    await append(ledger, [facts.usage_updated, { ...facts.tool_result, ...call(2) }])
    for (const [ordinal, more] of [
      [1, [facts.usage_updated, { ...facts.tool_result, ...call(1) }]],
      [2, [{ ...large, ...call(2) }]],
      [2, [{ ...facts.tool_result, ...call(2) }]],
    ] as const) {
      await expect(append(ledger, more)).rejects.toThrow(
        `has tool_result ${call(ordinal).toolCallId} on record already`,
      )
    }
    expect((await ledger.head(runId))?.seq).toBe(events.length + 3)
    const twice = [
      facts.usage_updated,
      { ...facts.tool_started, ...call(3) },
      { ...facts.tool_started, ...call(3) },
    ]
    await expect(append(ledger, twice)).rejects.toThrow(`has tool_started ${call(3).toolCallId}`)
    await append(ledger, twice.slice(0, 2))
    expect(await chainFaults(ledger, runId)).toEqual([])
    await ledger.close()
  },

  async 'lose single events, on record, and keep their neighbours'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    // Three deltas are packed; the finished message is not.
    expect(await redact(ledger, runId, [6, 12], removing)).toBe(4)
    const gone = [5, 6, 7, 12]
    const left = await Array.fromAsync(ledger.read(runId))
    expect(seqsOf(left.filter(({ removed }) => removed !== undefined))).toEqual(gone)
    expect(left.filter(({ seq }) => !gone.includes(seq))).toEqual(
      events.filter(({ seq }) => !gone.includes(seq)),
    )
    expect(await redact(ledger, runId, [6, 7, 12], removing)).toBe(0)
    expect(await redact(ledger, runId, [11], removing)).toBe(1)
    expect(await redact(ledger, runId, 'all', removing)).toBe(events.length - 5)
    const facts = (await Array.fromAsync(ledger.read(runId))).map(({ seq, type, at }) => ({ seq, type, at }))
    // Packed deltas have the time of the last one from then on.
    expect(facts).toEqual(
      events.map(({ seq, type, at }) => ({ seq, type, at: [5, 6].includes(seq) ? events[6]!.at : at })),
    )
    expect(await chainFaults(ledger, runId)).toEqual([])
    const bodies = await bed.rows('select body from @each_event order by seq')
    expect(bodies.map(({ body }) => body)).toEqual(events.map(() => null))
    await ledger.close()
  },

  async 'lose their deltas to retention, and keep what later events say'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    await append(ledger, [facts.run_finished])
    const now = Number.MAX_SAFE_INTEGER
    const dry = await applyRetention(ledger, { deltasMs: 0 }, { now, dryRun: true })
    expect(dry.deltas).toBe(4)
    expect(await applyRetention(ledger, { deltasMs: 0 }, { now })).toEqual(dry)
    expect(await applyRetention(ledger, { deltasMs: 0 }, { now })).toMatchObject({ deltas: 0 })
    const left = await Array.fromAsync(ledger.read(runId))
    expect(seqsOf(left.filter(({ removed }) => removed !== undefined))).toEqual([5, 6, 7, 8])
    expect(left.slice(8, events.length)).toEqual(events.slice(8))
    await applyRetention(ledger, { factsMs: 0 }, { now })
    expect(await ledger.head(runId)).toBeUndefined()
    expect(await bed.rows('select number from @fact')).toEqual([])
    expect((await Array.fromAsync(verifyLedger(ledger))).map(({ ok }) => ok)).toEqual([true])
    await ledger.close()
  },

  async 'are shown one row an event by a view, for those who ask in SQL'(bed) {
    const ledger = bed.open()
    const events = await written(ledger)
    const shown = await bed.rows(
      'select seq, type, at, v, turn, tool_call_id as call, body from @each_event order by seq',
    )
    expect(
      shown.map(({ body, ...columns }) => ({ ...columns, ...(JSON.parse(String(body)) as object) })),
    ).toEqual(
      events.map(({ runId: _run, epoch: _epoch, toolCallId, ...event }) => ({
        ...event,
        call: toolCallId ?? null,
      })),
    )
    await redact(ledger, runId, [6], removing)
    const left = await bed.rows('select seq from @each_event where body is null order by seq')
    expect(left.map(({ seq }) => seq)).toEqual([5, 6, 7])
    await ledger.close()
  },

  async 'keep what they hold against anyone who may not change it'(bed) {
    const ledger = bed.open()
    await written(ledger)
    const place = '(select pos from @event where seq > 3)'
    for (const statement of [
      `delete from @payload where pos = ${place}`,
      `update @payload set salt = (select salt from @payload where pos < ${place} limit 1) where pos = ${place}`,
      `update @payload set body = (select body from @payload where pos < ${place} limit 1) where pos = ${place}`,
      `update @payload set pos = pos + 1000 where pos = ${place}`,
      'delete from @fact',
      'update @fact set number = number + 1',
    ]) {
      await expect(bed.rows(`${statement} returning 1`)).rejects.toThrow(/^tallystick: /)
    }
    await redact(ledger, runId, [12], removing)
    for (const statement of [
      `delete from @payload where pos = ${place}`,
      `update @payload set body = salt where pos = ${place}`,
    ]) {
      await expect(bed.rows(`${statement} returning 1`)).rejects.toThrow(/^tallystick: /)
    }
    expect(await chainFaults(ledger, runId)).toEqual([])
    await ledger.close()
  },

  async 'verify with every law of a run, and facts that are gone, added or of no run are found'(bed) {
    const ledger = bed.open()
    const pause = (): Promise<void> => Promise.resolve()
    const drivenId: RunId = await driveLookingRun({ ledger, turns: 4, seed: 3, pause })
    const several = await bed.rows(`select seq from @event where type = 'several'`)
    expect(several.length).toBeGreaterThanOrEqual(6)
    expect(await verifyRun(ledger, drivenId)).toMatchObject({ ok: true })
    const [fact] = await bed.rows('select run, number from @fact order by number limit 1')
    const [run, number] = [Number(fact?.['run']), Number(fact?.['number'])]
    for (const [change, undo] of [
      [`delete from @fact where number = ${number}`, `insert into @fact values (${run}, ${number})`],
      [`insert into @fact values (${run}, 7)`, 'delete from @fact where number = 7'],
    ] as const) {
      await bed.tamper(change)
      expect(await verifyRun(ledger, drivenId)).toMatchObject({ ok: false, broken: { what: 'fact' } })
      await bed.tamper(undo)
    }
    await bed.tamper('insert into @fact values (9999999, 7)')
    expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({
      broken: { what: 'facts of no run' },
    })
    await bed.tamper('delete from @fact where number = 7')
    expect((await Array.fromAsync(verifyLedger(ledger))).map(({ ok }) => ok)).toEqual([true, true])
    await ledger.close()
  },

  async 'are damage at their first event where segments are gone and nothing says why'(bed) {
    const ledger = bed.open()
    await written(ledger)
    await redact(ledger, runId, [12], removing)
    await bed.tamper('delete from @removal')
    await expect(Array.fromAsync(ledger.read(runId))).rejects.toThrow('nothing says why its payload is gone')
    await ledger.close()
  },
}
