import type { EventQuery, Ledger } from '../../ledger/ledger.ts'
import type { EventType, Fact, RuntimeEvent } from '../../events/event.ts'
import type { RunId } from '../../values/ids.ts'
import { answers } from '../../ledger/queries.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { sampleCallId, sampleRunId, stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireEqual } from '../contract/requirement.ts'
import { appendAt, barrier, collect, saying, startRun } from '../contract/scenario.ts'

/** The runs of `grownLedger`: two of one session, one of another, one of none. */
const runIds = [1, 2, 3, 4].map(sampleRunId) as [RunId, RunId, RunId, RunId]
const [first, second, third, alone] = runIds
const sessions = new Map([
  [first, { sessionId: 'a', sessionPlace: 1 }],
  [second, { sessionId: 'a', sessionPlace: 2 }],
  [third, { sessionId: 'b', sessionPlace: 1 }],
])

/** What each run continues with, one append after the other, runs in turns. */
function roundsOf(runId: RunId, toolCallId = sampleCallId(runId)): readonly Fact[][] {
  const facts = everyFact(runId)
  return [
    [saying('a'), saying('b')],
    [
      { ...facts.tool_started, toolCallId },
      { ...facts.tool_progress, toolCallId },
    ],
    [
      { ...saying('c'), turn: 2 },
      { ...facts.tool_result, toolCallId, turn: 2 },
      { ...facts.cancel_requested, turn: 2 },
    ],
  ]
}

/** Four runs that grew in turns. Answers their events in the order in which they were appended. */
async function grownLedger(ledger: Ledger): Promise<readonly RuntimeEvent[]> {
  const written: RuntimeEvent[] = []
  const heads = new Map(runIds.map((runId) => [runId, 0]))
  const append = async (runId: RunId, facts: readonly Fact[]): Promise<void> => {
    const afterSeq = heads.get(runId) ?? 0
    const events = stamped(runId, facts, { afterSeq })
    await ledger.append(runId, { expectedSeq: afterSeq, epoch: 1 }, events, barrier)
    heads.set(runId, afterSeq + events.length)
    written.push(...events)
  }
  for (const runId of [third, first, alone, second]) {
    const { sessionId: _id, sessionPlace: _place, ...started } = everyFact(runId).run_started
    await append(runId, [{ ...started, ...sessions.get(runId) }])
  }
  for (const round of [0, 1, 2]) {
    for (const runId of [second, alone, first, third]) await append(runId, roundsOf(runId)[round] ?? [])
  }
  return written
}

/** What a query is to find of what was written. */
function wanted(written: readonly RuntimeEvent[], query: EventQuery): readonly RuntimeEvent[] {
  const { sessionId } = query
  return written.filter((event) => {
    if (sessionId !== undefined && sessions.get(event.runId)?.sessionId !== sessionId) return false
    return answers(event, query)
  })
}

async function requireFound(
  ledger: Ledger,
  written: readonly RuntimeEvent[],
  query: EventQuery,
): Promise<void> {
  const expected = wanted(written, query)
  requireEqual(await collect(ledger.find(query)), expected, `what ${JSON.stringify(query)} finds`)
}

/** The time of an event of `stamped`, by its seq. */
const timeOf = (seq: number): number => 1_760_000_000_000 + seq

/** A case that looks for these in the ledger of `grownLedger`; each query has to find something there. */
function finds(promise: string, ...queries: readonly EventQuery[]): LedgerContractCase {
  return {
    promise,
    async run(open) {
      const ledger = await open()
      const written = await grownLedger(ledger)
      for (const query of queries) {
        require(wanted(written, query).length > 0, `no event at all answers ${JSON.stringify(query)}`)
        await requireFound(ledger, written, query)
      }
    },
  }
}

const rare: readonly EventType[] = ['tool_result', 'run_started']

/** Every filter, alone and with every choice of the others. */
function everyCombination(): readonly EventQuery[] {
  const parts: readonly EventQuery[] = [
    { sessionId: 'a' },
    { runId: second },
    { turn: 2 },
    { toolCallId: sampleCallId(second) },
    { types: ['tool_result', 'tool_started', 'assistant_text_delta'] },
    { fromAt: timeOf(3) },
    { toAt: timeOf(7) },
  ]
  return parts.reduce<readonly EventQuery[]>(
    (queries, part) => [...queries, ...queries.map((query) => ({ ...query, ...part }))],
    [{}],
  )
}

/** Events by what their envelopes say, over all runs. */
export const findCases: readonly LedgerContractCase[] = [
  finds('a search without a filter finds every event, in the order of appends', {}),
  finds('events of a run are found by its id', { runId: first }, { runId: alone }),
  finds(
    'events of a session are found over all of its runs, in the order of appends',
    { sessionId: 'a' },
    { sessionId: 'b' },
  ),
  finds('events of a turn are found in all runs', { turn: 1 }, { turn: 2 }),
  finds('events of a tool call are found by its id', { toolCallId: sampleCallId(third) }),
  finds('events of a type are found in all runs', { types: ['tool_result'] }, { types: ['run_started'] }),
  finds(
    'events of several types are found in one order, whatever the order of the types',
    {
      types: rare,
    },
    { types: rare.toReversed() },
    { types: [...rare, ...rare] },
  ),
  finds(
    'events of a time are found, both ends included',
    { fromAt: timeOf(4) },
    { toAt: timeOf(4) },
    { fromAt: timeOf(3), toAt: timeOf(5) },
    { fromAt: timeOf(8), toAt: timeOf(8) },
    { fromAt: -Infinity, toAt: Infinity },
    { fromAt: timeOf(3) - 0.5, toAt: timeOf(3) + 0.5 },
  ),
  {
    promise: 'filters together find what is all of it, in every combination',
    async run(open) {
      const ledger = await open()
      const written = await grownLedger(ledger)
      const queries = everyCombination()
      const found = queries.filter((query) => wanted(written, query).length > 0)
      require(found.length > queries.length / 2, 'most combinations find nothing, and so show nothing')
      for (const query of queries) await requireFound(ledger, written, query)
    },
  },
  {
    promise: 'what names a run, a session, a call or a type that is not there finds nothing',
    async run(open) {
      const ledger = await open()
      await grownLedger(ledger)
      const queries: readonly EventQuery[] = [
        { runId: sampleRunId(9) },
        { runId: sampleRunId(9), types: ['run_started'] },
        { runId: sampleRunId(9), turn: 1 },
        { runId: third, sessionId: 'a' },
        { sessionId: 'A' },
        { sessionId: '' },
        { toolCallId: sampleCallId(sampleRunId(9)) },
        { toolCallId: sampleCallId(first), runId: second },
        { types: ['guardrail_tripped'] },
        { types: [] },
        { types: [], runId: first },
        { turn: 7 },
        { fromAt: timeOf(99) },
      ]
      for (const query of queries) {
        requireEqual(await collect(ledger.find(query)), [], `what ${JSON.stringify(query)} finds`)
      }
    },
  },
  {
    promise: 'an empty ledger finds nothing, however it is asked',
    async run(open) {
      const ledger = await open()
      for (const query of everyCombination())
        requireEqual(await collect(ledger.find(query)), [], 'the events')
    },
  },
  {
    promise: 'what is found rarely is found among thousands, and thousands are found whole',
    async run(open) {
      const ledger = await open()
      const facts = Array.from({ length: 3000 }, (_, index) => {
        return index % 700 === 99 ? everyFact(first).cancel_requested : saying(`${index}`)
      })
      await startRun(ledger, second)
      await startRun(ledger, first, facts)
      await appendAt(ledger, { seq: 1, epoch: 1 }, [everyFact(second).cancel_requested], { runId: second })
      const one = stamped(first, [everyFact(first).run_started, ...facts])
      const rareOnes = one.filter(({ type }) => type === 'cancel_requested')
      const last = stamped(second, [everyFact(second).cancel_requested], { afterSeq: 1 })
      const types = ['cancel_requested'] as const
      requireEqual(await collect(ledger.find({ types })), [...rareOnes, ...last], 'the rare ones')
      requireEqual(await collect(ledger.find({ runId: first, types })), rareOnes, 'the rare ones of the run')
      requireEqual(await collect(ledger.find({ runId: first })), one, 'the run')
      const all = [...stamped(second, [everyFact(second).run_started]), ...one, ...last]
      requireEqual(await collect(ledger.find()), all, 'everything')
    },
  },
]
