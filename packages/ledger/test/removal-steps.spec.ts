// How content is taken away step by step: what each step looks at, counts and puts on record.
import { ConfigurationError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { eventTypes } from '@tallystick/core/vocabulary'
import { applyRetention, redact } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { contentTypes, deltaTypes } from '../src/removal/content-types.ts'
import { droppedRunConflict } from '../src/removal/dropped-run.ts'
import { MissingContents } from '../src/removal/missing-content.ts'
import { batchOf, endedBatch, removableStoreOf, type RemovableStore } from '../src/removal/removable-store.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

/** A ledger, and what is asked of it where content is taken away. */
function opened() {
  const ledger: Ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const store = removableStoreOf(ledger) as RemovableStore
  const [events, remove] = [store.events.bind(store), store.remove.bind(store)]
  const [payloads, endedRuns] = [store.payloads.bind(store), store.endedRuns.bind(store)]
  const asked: unknown[] = []
  const removed: Parameters<typeof remove>[0][] = []
  const limits: number[] = []
  Object.assign(store, {
    events: (runId: RunId, from: number, to: number) => {
      asked.push([from, to])
      return events(runId, from, to)
    },
    remove: (removals: Parameters<typeof remove>[0]) => {
      removed.push(removals)
      return remove(removals)
    },
    payloads: (query: Parameters<typeof payloads>[0]) => (limits.push(query.limit), payloads(query)),
    endedRuns: (query: Parameters<typeof endedRuns>[0]) => (limits.push(query.limit), endedRuns(query)),
  })
  return { ledger, asked, removed, limits }
}

const at = 1_760_000_000_000
const by = { by: 'ada', reason: 'asked for' }

/** Records a run of so many texts, pieces of texts or facts, that has ended. */
async function record(
  ledger: Ledger,
  ordinal: number,
  count: number,
  type: 'input_received' | 'assistant_text_delta' | 'usage_updated' = 'input_received',
): Promise<RunId> {
  const runId = sampleRunId(ordinal)
  const facts = everyFact(runId)
  const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = facts.run_started
  const said = Array.from({ length: count }, () => facts[type])
  const events = stamped(runId, [start, ...said, facts.run_finished])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  return runId
}

describe('a redaction', () => {
  it('looks at 512 events at a time, and takes neighbours away together', async () => {
    const { ledger, asked, removed } = opened()
    const runId = await record(ledger, 1, 511)
    expect(await redact(ledger, runId, 'all', by)).toBe(513)
    expect(asked).toEqual([
      [1, 512],
      [513, 513],
    ])
    expect(removed.map((removals) => removals.map(({ fromSeq, toSeq }) => [fromSeq, toSeq]))).toEqual([
      [
        [1, 1],
        [2, 512],
      ],
      [[513, 513]],
    ])
    expect(removed.flat().every(({ kind, runId: of }) => kind === 'redacted' && of === runId)).toBe(true)
    expect(await redact(ledger, runId, 'all', by)).toBe(0)
    expect(removed).toHaveLength(2)
  })

  it('takes away what is named, as far as it is there', async () => {
    const { ledger, removed } = opened()
    const runId = await record(ledger, 1, 6)
    expect(await redact(ledger, runId, [2, 3, 5, 8], { ...by, at: 0 })).toBe(4)
    expect(removed).toMatchObject([
      [
        { fromSeq: 2, toSeq: 3, at: 0, by: 'ada', reason: 'asked for' },
        { fromSeq: 5, toSeq: 5 },
        { fromSeq: 8, toSeq: 8 },
      ],
    ])
    expect(await redact(ledger, runId, [3, 4], by)).toBe(1)
    expect(await redact(ledger, runId, [1], by)).toBe(1)
    expect(await redact(ledger, runId, [], by)).toBe(0)
  })

  it.each([0, -1, 1.5, 9, Number.NaN])(
    'is refused for an event %d that the run does not have',
    async (seq) => {
      const { ledger, removed } = opened()
      const runId = await record(ledger, 1, 6)
      await expect(redact(ledger, runId, [8, seq, 99], by)).rejects.toThrow(
        `has events 1 to 8, so event ${seq} cannot be redacted. Nothing was removed.`,
      )
      for (const wrong of [
        { ...by, by: '' },
        { ...by, reason: '' },
        { ...by, at: -1 },
      ])
        await expect(redact(ledger, runId, [1], wrong)).rejects.toThrow(ConfigurationError)
      expect(removed).toEqual([])
    },
  )
})

describe('rules of retention', () => {
  const later = at + 1_000_000

  it('take away pieces of texts and content, each by its age, and count them', async () => {
    const { ledger, removed, limits } = opened()
    const [pieces, texts] = [await record(ledger, 1, 600, 'assistant_text_delta'), await record(ledger, 2, 3)]
    await record(ledger, 3, 3, 'usage_updated')
    const received: unknown[] = []
    const dry = await applyRetention(ledger, { deltasMs: 1, contentMs: 1 }, { now: later, dryRun: true })
    expect(dry).toStrictEqual({ deltas: 600, content: 9, runs: 0, events: 0 })
    expect(removed).toEqual([])
    limits.length = 0
    const report = await applyRetention(
      ledger,
      { deltasMs: 1, contentMs: 1 },
      { now: later, by: 'night watch', reason: 'a rule', onProgress: (soFar) => received.push(soFar) },
    )
    expect(report).toStrictEqual(dry)
    expect(new Set(limits)).toEqual(new Set([512]))
    expect(received[0]).toMatchObject({ content: 0 })
    expect(received.at(-1)).toStrictEqual(report)
    const all = removed.flat()
    expect(
      all.every(
        ({ kind, by: who, reason, at: when }) =>
          `${kind} ${who} ${reason} ${when}` === `expired night watch a rule ${later}`,
      ),
    ).toBe(true)
    const of = (runId: RunId) =>
      all.filter((removal) => removal.runId === runId).map(({ fromSeq, toSeq }) => [fromSeq, toSeq])
    expect(of(texts)).toEqual([
      [1, 1],
      [2, 4],
      [5, 5],
    ])
    expect(of(pieces).at(-1)).toEqual([602, 602])
    const again = await applyRetention(ledger, { deltasMs: 1, contentMs: 1 }, { now: later })
    expect(again).toStrictEqual({ deltas: 0, content: 0, runs: 0, events: 0 })
  })

  it('name themselves where the caller gives no name, and give no reason', async () => {
    const { ledger, removed } = opened()
    await record(ledger, 1, 1)
    await applyRetention(ledger, { contentMs: 1 }, { now: later })
    const [first] = removed.flat()
    expect(first).toMatchObject({ by: 'retention', kind: 'expired' })
    expect(first).not.toHaveProperty('reason')
  })

  it('drop whole runs before anything else, each on its own', async () => {
    const { ledger, removed, limits } = opened()
    const [first, second] = [await record(ledger, 1, 2), await record(ledger, 2, 5)]
    const received: unknown[] = []
    const ages = { factsMs: 1, contentMs: 1, deltasMs: 1 }
    const report = await applyRetention(ledger, ages, {
      now: later,
      onProgress: (soFar) => received.push(soFar),
    })
    expect(report).toStrictEqual({ deltas: 0, content: 0, runs: 2, events: 11 })
    expect(limits[0]).toBe(1024)
    expect(removed).toMatchObject([
      [
        {
          runId: first,
          fromSeq: 1,
          toSeq: 4,
          kind: 'dropped',
          headHash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        },
      ],
      [{ runId: second, fromSeq: 1, toSeq: 7, kind: 'dropped' }],
    ])
    expect(received).toStrictEqual([
      { deltas: 0, content: 0, runs: 1, events: 4 },
      { deltas: 0, content: 0, runs: 2, events: 11 },
    ])
  })

  it('leave what is not older, to the millisecond', async () => {
    const { ledger } = opened()
    const runId = await record(ledger, 1, 2)
    const end = at + 4
    expect(await applyRetention(ledger, { factsMs: 10 }, { now: end + 10 })).toMatchObject({ runs: 0 })
    expect(await applyRetention(ledger, { contentMs: 10 }, { now: at + 1 + 10 })).toMatchObject({
      content: 0,
    })
    expect(await applyRetention(ledger, { factsMs: 10 }, { now: end + 11 })).toMatchObject({ runs: 1 })
    expect(await ledger.head(runId)).toBeUndefined()
  })

  it('need an age, from 0 on', async () => {
    const { ledger } = opened()
    await expect(applyRetention(ledger, {})).rejects.toThrow('Retention needs an age in milliseconds')
    for (const name of ['deltasMs', 'contentMs', 'factsMs']) {
      expect(await applyRetention(ledger, { [name]: 0 }, { now: 0 })).toMatchObject({ runs: 0, deltas: 0 })
      for (const age of [-1, Number.NaN, Infinity, '1'])
        await expect(applyRetention(ledger, { [name]: age as number })).rejects.toThrow(`${name} is `)
    }
    await expect(applyRetention(ledger, { factsMs: 1 }, { now: -1 })).rejects.toThrow('now is -1')
  })
})

describe('a batch of what may be taken away', () => {
  const items = [{ pos: 3 }, { pos: 5 }]

  it('continues after its last item where it is full, else where the search has come to', () => {
    expect(batchOf(items, { limit: 2, toPos: 9, lastPos: 9 })).toEqual({ items, next: 5 })
    expect(batchOf(items, { limit: 3, toPos: 8, lastPos: 9 })).toEqual({ items, next: 8 })
    expect(batchOf(items, { limit: 3, toPos: 9, lastPos: 9 })).toStrictEqual({ items })
    expect(batchOf([], { limit: 0, toPos: 8, lastPos: 9 })).toEqual({ items: [], next: 8 })
  })

  it('holds the runs that ended before a moment', () => {
    const ended = (pos: number, endedAt: number | null) => ({ pos, endedAt }) as never
    const runs = [ended(1, 10), ended(2, null), ended(3, 20)]
    const asked = { before: 20, afterPos: 0 }
    expect(endedBatch(runs, { ...asked, limit: 4 })).toStrictEqual({ items: [runs[0]] })
    expect(endedBatch(runs, { ...asked, limit: 3 })).toEqual({ items: [runs[0]], next: 3 })
    expect(endedBatch([], { ...asked, limit: 0 })).toStrictEqual({ items: [] })
  })
})

describe('content', () => {
  it('is in pieces, or whole; facts hold no content', () => {
    const facts = eventTypes.filter((type) => !contentTypes.includes(type) && !deltaTypes.includes(type))
    expect(facts.toSorted()).toEqual([
      ...['guardrails_checked', 'limit_raised', 'limit_reached', 'tool_deferred', 'tool_results_injected'],
      'usage_updated',
    ])
    expect(deltaTypes.toSorted()).toEqual([
      ...['assistant_reasoning_delta', 'assistant_text_delta', 'tool_input_delta', 'tool_progress'],
    ])
    expect(contentTypes.filter((type) => deltaTypes.includes(type))).toEqual([])
  })

  it('that is missing is counted by why it is', () => {
    const missing = new MissingContents()
    const removed = { kind: 'redacted', at: 5, by: 'ada', reason: 'x' } as const
    const handle = (more: object): void =>
      missing.handle({ removed: { ...removed, ...more } } as RuntimeEvent)
    missing.handle({} as RuntimeEvent)
    expect(missing.all).toEqual([])
    for (const more of [{}, { kind: 'expired' }, { at: 6 }, { by: 'bob' }, { reason: 'y' }, {}]) handle(more)
    expect(missing.all).toEqual([
      { ...removed, events: 2 },
      ...[{ kind: 'expired' }, { at: 6 }, { by: 'bob' }, { reason: 'y' }].map((more) => ({
        ...removed,
        ...more,
        events: 1,
      })),
    ])
  })

  it('of a run that was dropped is refused by the rule of the store alone', () => {
    const rule = new Error('constraint: a run that was dropped does not come back')
    expect(droppedRunConflict(rule, sampleRunId(1))).toMatchObject({
      code: 'ledger_conflict',
      kind: 'unique',
    })
    expect(droppedRunConflict(new Error('disk full'), sampleRunId(1))).toBeUndefined()
    expect(droppedRunConflict({ message: rule.message }, sampleRunId(1))).toBeUndefined()
    expect(droppedRunConflict(undefined, sampleRunId(1))).toBeUndefined()
  })
})
