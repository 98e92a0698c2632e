import { LedgerDamagedError, type Ledger, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleCallId, sampleRunId, stamped } from '@tallystick/core/testing'
import type { Fact } from '@tallystick/core/vocabulary'
import { applyRetention, redact, verifyRun } from '@tallystick/ledger'
import { expect } from 'vitest'
import { removableStore, removableStoreOf } from '../../src/removal/removable-store.ts'
import { driveLookingRun } from './looking-run.ts'
import type { SharedRowBed } from './shared-row-cases.ts'

const runId = sampleRunId(1)
const facts = everyFact(runId)
const lazy = { durability: 'lazy' } as const
const removing = { by: 'me', reason: 'asked' }
const call = { toolCallId: sampleCallId(runId) }
const delta = (text: string): Fact => ({ ...facts.assistant_text_delta, text })
const result = (text: string): Fact => ({ ...facts.tool_result, ...call, content: [{ type: 'text', text }] })

/** Appends facts, after those that the run has, in one append of one turn. */
async function append(ledger: Ledger, more: readonly Fact[]): Promise<readonly RuntimeEvent[]> {
  const { seq } = (await ledger.head(runId)) ?? { seq: 0 }
  const events = stamped(runId, more, { afterSeq: seq }).map((event): RuntimeEvent => ({ ...event, turn: 1 }))
  await ledger.append(runId, { expectedSeq: seq, epoch: 1 }, events, lazy)
  return events
}

/** A ledger that lets another take something away just before it does so itself. */
function overtaken(ledger: Ledger, first: () => Promise<unknown>): Ledger {
  const store = removableStoreOf(ledger)
  if (store === undefined) throw new Error('Nothing can be taken away from the ledger.')
  let isFirst = true
  return {
    ...ledger,
    [removableStore]: {
      ...store,
      async remove(removals: Parameters<typeof store.remove>[0]) {
        if (isFirst) await first()
        isFirst = false
        return await store.remove(removals)
      },
    },
  } as unknown as Ledger
}

async function leftOf(ledger: Ledger, type: string): Promise<readonly number[]> {
  const events = await Array.fromAsync(ledger.read(runId))
  return events.filter((event) => event.type === type && !event.removed).map(({ seq }) => seq)
}

/** What has to hold against those who write what no runtime writes, on every store, by claim. */
export const attackedRowCases: Readonly<Record<string, (bed: SharedRowBed) => Promise<void>>> = {
  async 'a view shows every event as it is read, whatever characters, numbers and names it holds'(bed) {
    const ledger = bed.open()
    await append(ledger, [facts.run_started, facts.input_received])
    await append(ledger, [
      ...[
        facts.model_call_started,
        delta('a\0'),
        delta('\ud83d'),
        delta('\ude00\\u0000'),
        delta('\\'),
        delta(''),
      ],
      { ...facts.usage_updated, n: [1e21, 5e-324, 0.1, { '10': 1, '2': '', '': null }] } as Fact,
      result('},\n{"heads":["\0 \ud83d \\u0000 \\\\ \u2028'),
    ])
    await append(ledger, ['b\0', '\udc00', '\\u005cu0000', '\\/', '"'].map(delta))
    const shown = await bed.rows('select seq, body from @each_event order by seq')
    const events = await Array.fromAsync(ledger.read(runId))
    const envelope = ['runId', 'seq', 'epoch', 'turn', 'toolCallId', 'type', 'v', 'at']
    expect(shown.map(({ seq, body }) => [seq, JSON.parse(String(body))])).toEqual(
      events.map((event) => [
        event.seq,
        Object.fromEntries(Object.entries(event).filter(([name]) => !envelope.includes(name))),
      ]),
    )
    await ledger.close()
  },

  async 'a redaction takes all that it names, where another takes some of it first'(bed) {
    const ledger = bed.open()
    await append(ledger, [facts.run_started, facts.input_received])
    const progress = { ...facts.tool_progress, ...call }
    await append(ledger, [facts.model_call_started, progress, progress, progress, progress])
    const late = overtaken(ledger, () => redact(ledger, runId, [5], removing))
    expect(await redact(late, runId, [4, 5, 6, 7], removing)).toBe(3)
    expect(await leftOf(ledger, 'tool_progress')).toEqual([])
    await ledger.close()
  },

  async 'retention takes all that is due, where a redaction takes some of it first'(bed) {
    const ledger = bed.open()
    await append(ledger, [facts.run_started, facts.input_received])
    const progress = { ...facts.tool_progress, ...call }
    await append(ledger, [facts.model_call_started, progress, progress, progress, progress])
    await append(ledger, [facts.run_finished])
    const late = overtaken(ledger, () => redact(ledger, runId, [5], removing))
    expect(await applyRetention(late, { deltasMs: 0 })).toMatchObject({ deltas: 3 })
    expect(await leftOf(ledger, 'tool_progress')).toEqual([])
    await ledger.close()
  },

  async 'verify finds a payload that came back after its removal'(bed) {
    const ledger = bed.open()
    const drivenId = await driveLookingRun({ ledger, turns: 2, seed: 3, pause: () => Promise.resolve() })
    await bed.tamper('create table @copied as select pos, salt, body from @payload')
    const all = await Array.fromAsync(ledger.read(drivenId))
    // Of a row of its own, and of one that holds others.
    for (const type of ['input_received', 'tool_result']) {
      const { seq = 0 } = all.find((event) => event.type === type) ?? {}
      await redact(ledger, drivenId, [seq], removing)
      expect(await verifyRun(ledger, drivenId)).toMatchObject({ ok: true })
      await bed.tamper('create table @left as select pos, salt, body from @payload')
      await bed.tamper('delete from @payload')
      await bed.tamper('insert into @payload select pos, salt, body from @copied')
      expect(await Array.fromAsync(ledger.read(drivenId))).toEqual(all)
      expect(await verifyRun(ledger, drivenId)).toMatchObject({ broken: { seq, what: 'payload' } })
      await bed.tamper('delete from @payload')
      await bed.tamper('insert into @payload select pos, salt, body from @left')
      await bed.tamper('drop table @left')
      await bed.tamper('drop table @copied')
      await bed.tamper('create table @copied as select pos, salt, body from @payload')
      all.splice(0, all.length, ...(await Array.fromAsync(ledger.read(drivenId))))
    }
    await ledger.close()
  },

  async 'a field that is called __proto__ is a field of its event'(bed) {
    const ledger = bed.open()
    const odd = (fact: Fact, field: string): Fact =>
      JSON.parse(JSON.stringify(fact).replace('{', `{"__proto__":${field},`)) as Fact
    await append(ledger, [facts.run_started])
    const events = await append(ledger, [
      ...[odd(delta('a'), '"p"'), odd(delta('b'), '"p"')],
      odd(facts.usage_updated, '{"removed":true}'),
    ])
    const read = await Array.fromAsync(ledger.read(runId, { fromSeq: 2 }))
    expect(read).toStrictEqual(events)
    for (const event of read) expect(Object.hasOwn(event, '__proto__')).toBe(true)
    await ledger.close()
  },

  async 'an attempt that is no number of one states no fact, and so takes the place of none'(bed) {
    for (const attempt of [-1, 1.5, 511, 1e21, null, undefined, 'one']) {
      const ledger = bed.open()
      await append(ledger, (await ledger.head(runId)) ? [] : [facts.run_started])
      const started = { ...facts.tool_started, ...call, attempt } as Fact
      await append(ledger, [started])
      expect([attempt, await bed.rows('select number from @fact')]).toEqual([attempt, []])
      await ledger.close()
    }
  },

  async 'a row that says that it holds events without end is refused, not walked through'(bed) {
    const ledger = bed.open()
    await append(ledger, [facts.run_started])
    await append(ledger, [delta('a'), delta('b')])
    await bed.tamper('update @event set first_seq = -4000000000000000 where first_seq is not null')
    await expect(redact(ledger, runId, [2], removing)).rejects.toThrow(LedgerDamagedError)
    await expect(Array.fromAsync(ledger.read(runId))).rejects.toThrow(LedgerDamagedError)
    await ledger.close()
  },
}
