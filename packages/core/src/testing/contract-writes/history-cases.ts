import type { Head, Ledger } from '../../ledger/ledger.ts'
import type { AssistantPart, Message } from '../../events/content.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import type { JsonObject } from '../../values/json.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleMessage, sampleRunId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { requireConflict, requireEqual } from '../contract/requirement.ts'
import { barrier, collect, requireRecord, saying } from '../contract/scenario.ts'
import { tailUntil } from '../contract/tail-until.ts'

/** A run of a session that begins with some messages. */
function carrying(place: number, messages: readonly Message[]): readonly RuntimeEvent[] {
  const runId = sampleRunId(place)
  const started = { ...everyFact(runId).run_started, sessionId: 's', sessionPlace: place }
  return stamped(runId, [started, { type: 'history_carried', turn: 0, messages }, saying('x')])
}

function append(ledger: Ledger, events: readonly RuntimeEvent[]): Promise<Head> {
  const [{ runId }] = events as readonly [RuntimeEvent]
  return ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, barrier)
}

async function requireRuns(ledger: Ledger, runs: readonly (readonly RuntimeEvent[])[]): Promise<void> {
  for (const events of runs) {
    const [{ runId }] = events as readonly [RuntimeEvent]
    await requireRecord(ledger, events, { runId })
  }
}

/** Appends runs that begin with these histories, and requires that each is read with its own. */
async function requireHistories(ledger: Ledger, histories: readonly (readonly Message[])[]): Promise<void> {
  const runs = histories.map((messages, index) => carrying(index + 1, messages))
  for (const [index, events] of runs.entries()) {
    await append(ledger, events)
    await requireRuns(ledger, runs.slice(0, index + 1))
  }
}

const [a, b, c, d, e] = ['a', 'b', 'c', 'd', 'e'].map(sampleMessage) as [
  ...[Message, Message, Message, Message, Message],
]

/** A call and its result, with an input that stores have tripped over. */
function pair(input: JsonObject): readonly Message[] {
  const call: AssistantPart = {
    type: 'tool_call',
    toolCallId: everyFact(sampleRunId(9)).tool_result.toolCallId,
    providerCallId: 'c1',
    name: 'look',
    input,
  }
  const { toolCallId } = call
  return [
    {
      role: 'assistant',
      parts: [{ type: 'text', text: 'half \ud800, a line\nand \u2028 another' }, call],
      model: { provider: 'p', api: 'a', modelId: 'm' },
      stopReason: 'tool_use',
      partial: false,
    },
    {
      role: 'tool',
      results: [{ toolCallId, name: 'look', outcome: 'success', content: [{ type: 'text', text: '' }] }],
    },
  ]
}

/** What runs of a session begin with: most of it is what the run before began with, and a store may keep that once. */
export const historyCases: readonly LedgerContractCase[] = [
  {
    promise: 'a run of a session is read with all that it began with, however much of it stood there before',
    async run(open) {
      const ledger = await open()
      await requireHistories(ledger, [[a], [a, b, c], [a, b, c, d], [a, b, c, d, e], [a, b, c, d, e]])
    },
  },
  {
    promise: 'runs that share the first messages, and differ after them, are each read with their own',
    async run(open) {
      const ledger = await open()
      await requireHistories(ledger, [
        [a, b, c, d],
        [a, b, e],
        [a, b, c, e],
        [a, b],
        [e],
        [b, c, d],
        [d, c, b, a],
        [a, a],
        [a, a, a],
        [a, b, e, c, d],
      ])
    },
  },
  {
    promise: 'what a run begins with comes back as it was said, whatever it holds',
    async run(open) {
      const ledger = await open()
      const odd = pair({
        '': 0,
        '10': 1,
        '9': 2,
        constructor: {},
        text: 'before\0after',
        large: '語'.repeat(20_000),
        holder: JSON.parse('{"__proto__":{"polluted":true}}') as JsonObject,
      })
      await requireHistories(ledger, [odd, [...odd, a], [...odd, a, ...pair({})], [...pair({}), ...odd]])
    },
  },
  {
    promise: 'what a run began with is found and told as it is read',
    async run(open) {
      const ledger = await open()
      const runs = [carrying(1, [a]), carrying(2, [a, b]), carrying(3, [a, c])]
      for (const events of runs) await append(ledger, events)
      const found = await collect(ledger.find({ types: ['history_carried'] }))
      requireEqual(
        found,
        runs.map(([, carried]) => carried as RuntimeEvent),
        'what is found',
      )
      const tailed = (await tailUntil(ledger, runs.flat().length)).map(({ event }) => event)
      requireEqual(tailed, runs.flat(), 'what the tail tells')
    },
  },
  {
    promise:
      'a run that begins with a history is recognised when its acknowledgement was lost, and no other is',
    async run(open) {
      const ledger = await open()
      const [first, second] = [carrying(1, [a, b]), carrying(2, [a, b, c])]
      await append(ledger, first)
      requireEqual(await append(ledger, second), { seq: 3, epoch: 1 }, 'the head at the first try')
      requireEqual(await append(ledger, second), { seq: 3, epoch: 1 }, 'the head at the second try')
      await requireConflict(append(ledger, carrying(2, [a, b, d])), 'seq')
      await requireRuns(ledger, [first, second])
    },
  },
  {
    promise: 'runs that begin with the same messages at once are all read with them',
    async run(open) {
      const ledger = await open()
      const runs = Array.from({ length: 8 }, (_, index) =>
        carrying(index + 1, index % 2 === 0 ? [a, b, c] : [a, b, c, d]),
      )
      await Promise.all(runs.map((events) => append(ledger, events)))
      await requireRuns(ledger, runs)
    },
  },
  {
    promise: 'of a run that was refused, what it would have begun with is in no other run’s way',
    async run(open) {
      const ledger = await open()
      await append(ledger, carrying(1, [a]))
      const [refused, other] = [carrying(1, [a, b, c]), carrying(2, [a, b, c, d])]
      await requireConflict(append(ledger, refused), 'seq')
      await append(ledger, other)
      await requireRuns(ledger, [carrying(1, [a]), other])
    },
  },
]
