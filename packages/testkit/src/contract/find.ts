import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { matchesQuery } from '@tallystick/core/internal'
import type { EventQuery, EventType, Fact } from '@tallystick/core/vocabulary'
import { sampleFacts } from '../samples/events.ts'
import { sampleCallId, sampleRunId, stampFacts } from '../samples/values.ts'
import {
  appendAt,
  barrier,
  collect,
  checkLedger,
  checkRun,
  type LedgerContractCase,
  otherRun,
  require,
  requireEqual,
  requireRefusal,
  run,
  saying,
  startRun,
  steering,
} from './scenario.ts'

/** The runs of `grownLedger`: two of one session, one of another, one of none. */
const runIds = [1, 2, 3, 4].map(sampleRunId) as [RunId, RunId, RunId, RunId]
const [first, second, third, alone] = runIds
const sessions = new Map([
  [first, { sessionId: 'a', sessionPlace: 1 }],
  [second, { sessionId: 'a', sessionPlace: 2 }],
  [third, { sessionId: 'b', sessionPlace: 1 }],
])

/** The appends of each run, one after the other, the runs in turn. */
function createRounds(runId: RunId, toolCallId = sampleCallId(runId)): readonly Fact[][] {
  const facts = sampleFacts(runId)
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
async function growLedger(ledger: Ledger): Promise<readonly RuntimeEvent[]> {
  const written: RuntimeEvent[] = []
  const heads = new Map(runIds.map((runId) => [runId, 0]))
  const append = async (runId: RunId, facts: readonly Fact[]): Promise<void> => {
    const afterSeq = heads.get(runId) ?? 0
    const events = stampFacts(runId, facts, { afterSeq })
    await ledger.append(runId, { expectedSeq: afterSeq, epoch: 1 }, events, barrier)
    heads.set(runId, afterSeq + events.length)
    written.push(...events)
  }
  for (const runId of [third, first, alone, second]) {
    const { sessionId: _id, sessionPlace: _place, ...started } = sampleFacts(runId).run_started
    await append(runId, [{ ...started, ...sessions.get(runId) }])
  }
  for (const round of [0, 1, 2]) {
    for (const runId of [second, alone, first, third]) await append(runId, createRounds(runId)[round] ?? [])
  }
  return written
}

/** The events that a query must find among those written. */
function selectWanted(written: readonly RuntimeEvent[], query: EventQuery): readonly RuntimeEvent[] {
  const { sessionId } = query
  return written.filter((event) => {
    if (sessionId !== undefined && sessions.get(event.runId)?.sessionId !== sessionId) return false
    return matchesQuery(event, query)
  })
}

async function requireFound(
  ledger: Ledger,
  written: readonly RuntimeEvent[],
  query: EventQuery,
): Promise<void> {
  const expected = selectWanted(written, query)
  requireEqual(await collect(ledger.find(query)), expected, `what ${JSON.stringify(query)} finds`)
}

/** The time of an event of `stampFacts`, by its seq. */
const toTime = (seq: number): number => 1_760_000_000_000 + seq

/** A case that looks for these in the ledger of `grownLedger`; each query has to find something there. */
function finds(promise: string, ...queries: readonly EventQuery[]): LedgerContractCase {
  return checkLedger(promise, async (ledger) => {
    const written = await growLedger(ledger)
    for (const query of queries) {
      require(selectWanted(written, query).length > 0, `no event at all answers ${JSON.stringify(query)}`)
      await requireFound(ledger, written, query)
    }
  })
}

const rare: readonly EventType[] = ['tool_result', 'run_started']

/** Every filter, alone and with every choice of the others. */
function listCombinations(): readonly EventQuery[] {
  const parts: readonly EventQuery[] = [
    { sessionId: 'a' },
    { runId: second },
    { turn: 2 },
    { toolCallId: sampleCallId(second) },
    { types: ['tool_result', 'tool_started', 'assistant_text_delta'] },
    { fromAt: toTime(3) },
    { toAt: toTime(7) },
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
    { fromAt: toTime(4) },
    { toAt: toTime(4) },
    { fromAt: toTime(3), toAt: toTime(5) },
    { fromAt: toTime(8), toAt: toTime(8) },
    { fromAt: -Infinity, toAt: Infinity },
    { fromAt: toTime(3) - 0.5, toAt: toTime(3) + 0.5 },
  ),
  checkLedger('filters together find what is all of it, in every combination', async (ledger) => {
    const written = await growLedger(ledger)
    const queries = listCombinations()
    const found = queries.filter((query) => selectWanted(written, query).length > 0)
    require(found.length > queries.length / 2, 'most combinations find nothing, and so show nothing')
    for (const query of queries) await requireFound(ledger, written, query)
  }),
  checkLedger(
    'what names a run, a session, a call or a type that is not there finds nothing',
    async (ledger) => {
      await growLedger(ledger)
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
        { fromAt: toTime(99) },
      ]
      for (const query of queries) {
        requireEqual(await collect(ledger.find(query)), [], `what ${JSON.stringify(query)} finds`)
      }
    },
  ),
  checkLedger('an empty ledger finds nothing, however it is asked', async (ledger) => {
    for (const query of listCombinations()) requireEqual(await collect(ledger.find(query)), [], 'the events')
  }),
  checkLedger(
    'what is found rarely is found among thousands, and thousands are found whole',
    async (ledger) => {
      const facts = Array.from({ length: 3000 }, (_, index) => {
        return index % 700 === 99 ? sampleFacts(first).cancel_requested : saying(`${index}`)
      })
      await startRun(ledger, second)
      await startRun(ledger, first, facts)
      await appendAt(ledger, { seq: 1, epoch: 1 }, [sampleFacts(second).cancel_requested], { runId: second })
      const one = stampFacts(first, [sampleFacts(first).run_started, ...facts])
      const rareOnes = one.filter(({ type }) => type === 'cancel_requested')
      const last = stampFacts(second, [sampleFacts(second).cancel_requested], { afterSeq: 1 })
      const types = ['cancel_requested'] as const
      requireEqual(await collect(ledger.find({ types })), [...rareOnes, ...last], 'the rare ones')
      requireEqual(await collect(ledger.find({ runId: first, types })), rareOnes, 'the rare ones of the run')
      requireEqual(await collect(ledger.find({ runId: first })), one, 'the run')
      const all = [...stampFacts(second, [sampleFacts(second).run_started]), ...one, ...last]
      requireEqual(await collect(ledger.find()), all, 'everything')
    },
  ),
]

const facts = Array.from({ length: 9 }, (_, index) => saying(`delta ${index}`))

function createTen(runId: RunId): readonly RuntimeEvent[] {
  return stampFacts(runId, [sampleFacts(runId).run_started, ...facts])
}

async function startTwoRuns(ledger: Ledger): Promise<readonly RuntimeEvent[]> {
  await startRun(ledger, run, facts)
  await startRun(ledger, otherRun, facts)
  return [...createTen(run), ...createTen(otherRun)]
}

/** Searches while others write, and beside each other. */
export const searchCases: readonly LedgerContractCase[] = [
  checkLedger('a search that is stopped half-way leaves the ledger free to append', async (ledger) => {
    await startTwoRuns(ledger)
    for await (const event of ledger.find()) if (event.seq === 3) break
    const head = await appendAt(ledger, { seq: 10, epoch: 1 }, [saying('k')])
    requireEqual(head, { seq: 11, epoch: 1 }, 'the head')
  }),
  checkLedger(
    'a search ends although as much is appended as it finds, and finds all that stood before',
    async (ledger) => {
      await startRun(ledger, otherRun, facts)
      // More than a store reads at once, so that it meets events appended during the search.
      await startRun(
        ledger,
        run,
        Array.from({ length: 400 }, (_, index) => saying(`${index}`)),
      )
      for (const query of [{}, { types: ['assistant_text_delta'] as const }]) {
        const found: RuntimeEvent[] = []
        let head = (await ledger.head(run)) ?? { seq: 0, epoch: 1 }
        const existing = await collect(ledger.find(query))
        for await (const event of ledger.find(query)) {
          found.push(event)
          require(found.length < 5000, 'a search has no end while it is appended to')
          head = await appendAt(ledger, head, [saying(`beside ${found.length}`)])
        }
        requireEqual(found.slice(0, existing.length), existing, 'what was found of what stood before')
        const seqs = found.filter(({ runId }) => runId === run).map(({ seq }) => seq)
        requireEqual(
          seqs,
          seqs.toSorted((left, right) => left - right),
          'the order of what was found',
        )
        requireEqual(new Set(seqs).size, seqs.length, 'the number of different events')
      }
      requireEqual((await collect(ledger.find({ runId: otherRun }))).length, 10, 'the other run')
    },
  ),
  checkLedger(
    'a search misses no event of a run in front of one that it finds, while runs are appended to at once',
    async (ledger) => {
      await startTwoRuns(ledger)
      const grow = async (runId: RunId): Promise<void> => {
        for (let seq = 10; seq < 40; seq++)
          await appendAt(ledger, { seq, epoch: 1 }, [saying('x')], { runId })
      }
      const growth = { isOver: false }
      const grown = Promise.allSettled([grow(run), grow(otherRun)]).finally(() => (growth.isOver = true))
      while (!growth.isOver) {
        const found = await collect(ledger.find())
        for (const runId of [run, otherRun]) {
          const seqs = found.filter((event) => event.runId === runId).map(({ seq }) => seq)
          const gapless = seqs.map((_, index) => index + 1)
          requireEqual(seqs, gapless, `the seqs of run ${runId}`)
          require(seqs.length >= 10, 'events that stood before a search are not found by it')
        }
      }
      await grown
      requireEqual((await collect(ledger.find())).length, 80, 'the number of events')
    },
  ),
  checkLedger('the order of a search is the same at every look, whatever else was asked', async (ledger) => {
    await Promise.all([startRun(ledger, run), startRun(ledger, otherRun)])
    const grow = async (runId: RunId): Promise<void> => {
      for (let seq = 1; seq < 20; seq++) await appendAt(ledger, { seq, epoch: 1 }, [saying('x')], { runId })
    }
    await Promise.all([grow(run), grow(otherRun)])
    const all = await collect(ledger.find())
    const types = ['assistant_text_delta', 'run_started'] as const
    requireEqual(await collect(ledger.find()), all, 'the second look')
    requireEqual(await collect(ledger.find({ types })), all, 'a look by types')
    requireEqual(await collect(ledger.find({ fromAt: 0 })), all, 'a look by time')
    requireEqual(all.length, 40, 'the number of events')
  }),
  checkLedger('searches at once do not disturb each other', async (ledger) => {
    const all = await startTwoRuns(ledger)
    const looks = [ledger.find(), ledger.find({ runId: run }), ledger.find({ runId: otherRun })]
    const [whole, left, right] = await Promise.all(looks.map(collect))
    requireEqual(whole, all, 'everything')
    requireEqual(left, createTen(run), 'the one run')
    requireEqual(right, createTen(otherRun), 'the other run')
  }),
]

const [next] = stampFacts(run, [saying('a')], { afterSeq: 1 }) as [RuntimeEvent]

type Asking = (ledger: Ledger, given: never) => AsyncIterable<unknown> | Promise<unknown>

/** A case that asks for what no caller means; each refusal has to name what is wrong. */
function refuses(
  promise: string,
  ask: Asking,
  given: readonly (readonly [unknown, string])[],
): LedgerContractCase {
  return checkRun(promise, async (ledger) => {
    for (const [value, words] of given) {
      // A store may refuse at the call, or when the first item is asked for.
      const asking = (async () => {
        const asked = ask(ledger, value as never)
        return 'then' in asked ? await asked : await collect(asked)
      })()
      const { message } = await requireRefusal(asking, 'configuration')
      require(message.includes(words), `the refusal should say "${words}", but says: ${message}`)
    }
    require((await collect(ledger.read(run))).length === 1, 'the run should be as it was')
  })
}

const entriesByRun: readonly (readonly [string, Asking])[] = [
  ['a read', (ledger, runId) => ledger.read(runId)],
  ['a look for the head', (ledger, runId) => ledger.head(runId)],
  ['a look into the inbox', (ledger, runId) => ledger.inbox(runId)],
  ['a put', (ledger, runId) => ledger.put(runId, steering('k1'))],
  ['a take-over', (ledger, runId) => ledger.acquire(runId)],
  ['an append', (ledger, runId) => ledger.append(runId, { expectedSeq: 1, epoch: 1 }, [next], barrier)],
]

/** Mistakes that plain JavaScript allows: with the filter ignored, the answer would be wrong. */
export const askedCases: readonly LedgerContractCase[] = [
  refuses(
    'a search refuses filters that it does not know, and values that no event has',
    (ledger, query) => ledger.find(query),
    [
      [null, 'is null'],
      [{ type: ['run_finished'] }, 'Did you mean types?'],
      [{ runid: run }, 'Did you mean runId?'],
      [{ runId: 5 }, 'runId is 5'],
      [{ sessionId: 5 }, 'sessionId is 5'],
      [{ toolCallId: 5 }, 'toolCallId is 5'],
      [{ types: 'run_finished' }, 'types is a text'],
      [{ types: ['run_finishd'] }, "Did you mean 'run_finished'?"],
      [{ turn: '1' }, 'turn is a text'],
      [{ turn: 1.5 }, 'turn is 1.5'],
      [{ fromAt: NaN }, 'fromAt is NaN'],
      [{ toAt: '2026-01-01' }, 'toAt is a text'],
      [{ fromAt: 5, toAt: 4 }, 'toAt is before fromAt'],
    ],
  ),
  refuses(
    'a list of runs refuses filters that it does not know, and values that no run has',
    (ledger, filter) => ledger.runs(filter),
    [
      [null, 'is null'],
      [{ sesionId: 'a' }, 'Did you mean sessionId?'],
      [{ sessionId: 5 }, 'sessionId is 5'],
      [{ before: 5 }, 'before is 5'],
      [{ limit: NaN }, 'limit is NaN'],
      [{ limit: -1 }, 'limit is -1'],
      [{ limit: 1.5 }, 'limit is 1.5'],
    ],
  ),
  refuses('a read refuses what is not a range of whole numbers', (ledger, range) => ledger.read(run, range), [
    [null, 'is null'],
    [5, 'the range is 5'],
    [{ from: 1 }, 'Did you mean'],
    [{ fromSeq: NaN }, 'fromSeq is NaN'],
    [{ fromSeq: -1 }, 'fromSeq is -1'],
    [{ toSeq: '5' }, 'toSeq is a text'],
  ]),
  ...entriesByRun.map(([verb, ask]) =>
    refuses(`${verb} refuses a run id that is not text`, ask, [
      [undefined, 'the run id is missing'],
      [5, 'the run id is 5'],
      [{ runId: run }, 'the run id is an object'],
    ]),
  ),
  refuses('a tail refuses a cursor that is not text', (ledger, cursor) => ledger.tail(cursor), [
    [null, 'the cursor is null'],
    [5, 'the cursor is 5'],
  ]),
]
