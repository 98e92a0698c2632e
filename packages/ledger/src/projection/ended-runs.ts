import { type Ledger, type Limits, type RunId, type RuntimeEvent, TallystickError } from '@tallystick/core'
import { omitUndefined, option, requireLedger, requireOptions, toRunTimes } from '@tallystick/core/internal'
import {
  addUsage,
  type EventOf,
  eventTraits,
  type EventType,
  eventTypes,
  type LimitName,
  type RunRecord,
} from '@tallystick/core/vocabulary'
import type { RawBuilder } from 'kysely'
import { isPlain } from '../format/body.ts'
import { readFound } from '../store/find-events.ts'
import { eventsBy, type FoundRow, rareType, selectLinked, type StoreDatabase } from '../store/database.ts'
import { databaseOf } from '../store/store.ts'
import { RunAccumulator } from './run-accumulator.ts'
import { toEndedStatus, type RunSummary } from './run-summary.ts'

/** The rows of a run, counted. */
export interface RunOutline {
  readonly run_id: string
  readonly events: number
  readonly last_seq: number
  /** Rows of types and versions that this release does not know. */
  readonly unknown: number
  /** Rows of the types that were asked about. */
  readonly counted: number
}

/** Every type in every version that this release knows. */
const knownVersions: readonly string[] = Object.entries(eventTraits).flatMap(([type, { v }]) =>
  Array.from({ length: v }, (_, index) => `${type} ${index + 1}`),
)

/** Counts the rows of those of the runs that have ended. */
function countRows(
  database: StoreDatabase,
  runIds: readonly RunId[],
  types: readonly string[],
): Promise<readonly RunOutline[]> {
  return database.query((queries) => {
    const { db, sql } = queries
    const ended = db
      .selectFrom(eventsBy(queries, 'event_type'))
      .select('event.run_id')
      .where('event.type', '=', 'run_finished')
      .where(sql<boolean>`event.${sql.raw(rareType)}`)
      .where('event.run_id', 'in', runIds)
    const count = (condition: RawBuilder<unknown>) => sql<number>`count(*) filter (where ${condition})`
    return db
      .selectFrom('event')
      .select([
        'run_id',
        sql<number>`count(*)`.as('events'),
        sql<number>`max(seq)`.as('last_seq'),
        count(sql`type || ' ' || v not in (${sql.join(knownVersions)})`).as('unknown'),
        count(sql`type in (${sql.join(types)})`).as('counted'),
      ])
      .where('run_id', 'in', ended)
      .groupBy('run_id')
  })
}

/** Which rows of which runs. */
export interface RowRange {
  readonly runIds: readonly RunId[]
  readonly types: readonly string[]
  /** In each run, both ends included. */
  readonly fromSeq: number
  readonly toSeq: number
}

/** The rows of some types of some runs, each with the link before it, in no order. */
function readRowsOfTypes(
  database: StoreDatabase,
  { runIds, types, fromSeq, toSeq }: RowRange,
): Promise<readonly FoundRow[]> {
  return database.query((queries) =>
    selectLinked(queries)
      .where('event.run_id', 'in', runIds)
      .where('event.type', 'in', types)
      .where('event.seq', '>=', fromSeq)
      .where('event.seq', '<=', toSeq),
  )
}

/** The rows of the first inputs of some runs, each with the link before it, in no order. */
function readFirstInputRows(database: StoreDatabase, runIds: readonly RunId[]): Promise<readonly FoundRow[]> {
  return database.query((queries) => {
    const { db, sql } = queries
    const isInput = sql<boolean>`event.type = 'input_received' and event.${sql.raw(rareType)}`
    const firsts = db
      .selectFrom(eventsBy(queries, 'event_type'))
      .select(({ fn }) => ['event.run_id', fn.min('event.seq').as('seq')])
      .where('event.run_id', 'in', runIds)
      .where(isInput)
      .groupBy('event.run_id')
    return selectLinked(queries).innerJoin(firsts.as('first'), (on) =>
      on.onRef('first.run_id', '=', 'event.run_id').onRef('first.seq', '=', 'event.seq'),
    )
  })
}

interface Known {
  readonly start?: EventOf<'run_started'>
  readonly end?: EventOf<'run_finished'>
  readonly limits: Limits
  readonly metLimit?: LimitName | undefined
  readonly children: RunSummary['children']
}

/** The events that say all that a summary has of a run that has ended, with what each adds beside its accumulated part. */
const takes: { readonly [T in EventType]: ((known: Known, event: EventOf<T>) => Known) | null } = {
  run_started: (known, start) => ({ ...known, start, limits: start.limits }),
  history_carried: null,
  history_edited: null,
  run_resumed: null,
  run_finished: (known, end) => ({ ...known, end }),
  input_received: null,
  input_settled: null,
  model_call_started: null,
  assistant_started: null,
  assistant_text_delta: null,
  assistant_reasoning_delta: null,
  tool_input_delta: null,
  tool_request_ready: null,
  usage_updated: null,
  assistant_message_finished: null,
  model_stream_failed: (known) => known,
  tool_requests_collected: null,
  approval_requested: null,
  approval_decided: null,
  tool_started: (known) => known,
  tool_progress: null,
  tool_deferred: null,
  tool_attempt_failed: null,
  tool_result(known, { child }) {
    if (child === undefined) return known
    const { runs, turns, toolCalls } = known.children
    const children = { runs: runs + 1, turns: turns + child.turns, toolCalls: toolCalls + child.toolCalls }
    return { ...known, children }
  },
  tool_results_injected: null,
  compaction_started: null,
  context_compacted: null,
  agent_handed_off: (known) => known,
  guardrail_tripped: null,
  guardrails_checked: null,
  output_checked: null,
  limit_reached: (known, { limit }) => ({ ...known, metLimit: limit }),
  limit_raised: (known, { limit, max }) => ({
    ...known,
    limits: { ...known.limits, [limit]: max },
    metLimit: known.metLimit === limit ? undefined : known.metLimit,
  }),
  cancel_requested: null,
}

const summaryTypes = eventTypes.filter((type) => takes[type] !== null)

/** So many rows are held at once. */
const rowsAtOnce = 512

type ListedHead = Pick<RunRecord, 'runId' | 'head'>

/**
 * Summaries of those of the runs that have ended, from the few events that say how: the end of a run says what it came
 * to, so nothing is folded. They are what a fold gives. Each event that is read is checked against the chain, and all
 * others are counted.
 *
 * Leaves out what only a fold can tell: runs that have not ended, runs with events that are missing, damaged or unknown, or that
 * need more than their own bytes to be read, and all runs of a ledger that lends no tables.
 */
export async function summarizeEndedRuns(
  ledger: Ledger,
  runs: readonly ListedHead[],
): Promise<ReadonlyMap<RunId, RunSummary>> {
  const found = new Map<RunId, RunSummary>()
  const database = databaseOf(ledger)
  if (database === undefined || runs.length === 0) return found
  try {
    for (const some of await groupReadable(database, runs)) {
      for (const [runId, ending] of await readEndings(database, some)) {
        const { summary } = ending
        if (summary) found.set(runId, summary)
      }
    }
  } catch (error) {
    if (!(error instanceof TallystickError)) throw error
  }
  return found
}

/** Runs whose rows are read together: several with few rows, or one. */
interface Together {
  readonly runIds: RunId[]
  toSeq: number
  rows: number
}

/** The runs that have ended, and of which every event is there and known. */
async function groupReadable(
  database: StoreDatabase,
  runs: readonly ListedHead[],
): Promise<readonly Together[]> {
  const heads = new Map<string, ListedHead>(runs.map((run) => [run.runId, run]))
  const groups: Together[] = []
  for (const outline of await countRows(database, [...heads.values()].map(idOf), summaryTypes)) {
    const { run_id, events, last_seq, unknown, counted } = outline
    const run = heads.get(run_id)
    if (run?.head.seq !== last_seq || events !== last_seq || unknown > 0) continue
    const last = groups.at(-1)
    if (last && last.rows + counted <= rowsAtOnce) {
      last.runIds.push(run.runId)
      last.rows += counted
      last.toSeq = Math.max(last.toSeq, last_seq)
    } else groups.push({ runIds: [run.runId], toSeq: last_seq, rows: counted })
  }
  return groups
}

function idOf({ runId }: ListedHead): RunId {
  return runId
}

/** Reads the rows of a run that has many of them in parts: its types are about evenly over it. */
async function readEndings(
  database: StoreDatabase,
  { runIds, toSeq: lastSeq, rows }: Together,
): Promise<ReadonlyMap<RunId, Ending>> {
  const endings = new Map<RunId, Ending>()
  const parts = runIds.length === 1 ? Math.ceil(rows / rowsAtOnce) : 1
  const width = Math.ceil(lastSeq / parts)
  for (let fromSeq = 1; fromSeq <= lastSeq; fromSeq += width) {
    const toSeq = Math.min(fromSeq + width - 1, lastSeq)
    const found = await readRowsOfTypes(database, { runIds, types: summaryTypes, fromSeq, toSeq })
    for (const [runId, ofRun] of Map.groupBy(found, ({ run_id }) => run_id as RunId)) {
      const ending = endings.get(runId) ?? new Ending()
      endings.set(runId, ending)
      for (const row of ofRun.toSorted((a, b) => a.seq - b.seq)) ending.handle(row)
    }
  }
  return endings
}

/** Reads the end of one run from its events. */
class Ending {
  readonly #accumulator = new RunAccumulator()
  #known: Known = { limits: {}, children: { runs: 0, turns: 0, toolCalls: 0 } }
  #isReadable = true

  handle(row: FoundRow): void {
    const event = this.#isReadable ? readPlainEvent(row) : undefined
    // What is left of an event is not all that it said.
    this.#isReadable = event !== undefined && event.removed === undefined
    if (event === undefined) return
    this.#accumulator.add(event)
    const take = takes[event.type] as ((known: Known, event: RuntimeEvent) => Known) | null
    if (take) this.#known = take(this.#known, event)
  }

  get summary(): RunSummary | undefined {
    const { start, end, limits, metLimit: limit, children } = this.#known
    if (!this.#isReadable || start === undefined || end === undefined) return undefined
    const { agents, childRunIds, calls, failedAttempts } = this.#accumulator.run
    const { sessionId, sessionPlace, parent } = start
    const { runId, seq, turn, at, reason, detail, turns, toolCalls, usage, costUsd } = end
    return {
      ...{ runId, status: toEndedStatus(reason), seq, turn },
      ...toRunTimes({ runId, startedAt: start.at, at, ...omitUndefined({ parent }) }),
      ...{ agent: agents.at(-1) ?? start.agent, agents },
      ...omitUndefined({ sessionId, sessionPlace, parent }),
      reason,
      ...(detail !== undefined && { hasDetail: true as const }),
      ...{ isStreaming: false, started: [] },
      waits: {
        ...{ approvals: [], deferred: [], children: [] },
        ...(limit && { limit: { limit, ...omitUndefined({ max: limits[limit] }) } }),
      },
      ...{ calls, failedAttempts, childRunIds, turns, toolCalls, children },
      usage: addUsage({}, usage),
      ...omitUndefined({ costUsd }),
    }
  }
}

/** The event of a row; `undefined` if the row has changed, or needs more than its own text. */
function readPlainEvent(row: FoundRow): RuntimeEvent | undefined {
  if (!isPlain(row)) return undefined
  try {
    return readFound(row)
  } catch (error) {
    if (error instanceof TallystickError) return undefined
    throw error
  }
}

/** So many runs are looked up at once. */
const runsAtOnce = 64

const runIdList = option.listOf(option.anyText)

type Input = EventOf<'input_received'>

/**
 * Returns the event with the first input of each of some runs, looked up for many runs at once where the store allows.
 * Leaves out runs without one, and runs of which it cannot be read.
 */
export async function firstInputs(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, Input>> {
  requireLedger('firstInputs', ledger)
  requireOptions('firstInputs', runIdList, runIds, 'the list of run ids')
  const found = new Map<RunId, Input>()
  for (let index = 0; index < runIds.length; index += runsAtOnce) {
    const some = runIds.slice(index, index + runsAtOnce)
    const left = await lookUp(ledger, some, found)
    for (const runId of left) {
      const event = await findFirstInput(ledger, runId)
      if (event) found.set(runId, event)
    }
  }
  return found
}

/** Adds what can be looked up to `found`, and returns the runs that have to be searched. */
async function lookUp(
  ledger: Ledger,
  runIds: readonly RunId[],
  found: Map<RunId, Input>,
): Promise<readonly RunId[]> {
  const database = databaseOf(ledger)
  if (database === undefined) return runIds
  try {
    const left: RunId[] = []
    for (const row of await readFirstInputRows(database, runIds)) {
      const runId = row.run_id as RunId
      // What needs more than its own text to be read, a search brings along.
      if (!isPlain(row)) left.push(runId)
      else for (const event of soundEvents(() => [readFound(row)])) found.set(runId, event as Input)
    }
    return left
  } catch (error) {
    if (error instanceof TallystickError) return runIds
    throw error
  }
}

function soundEvents<Events>(read: () => readonly Events[]): readonly Events[] {
  try {
    return read()
  } catch (error) {
    // Damaged: verify names the place.
    if (error instanceof TallystickError) return []
    throw error
  }
}

async function findFirstInput(ledger: Ledger, runId: RunId): Promise<Input | undefined> {
  try {
    for await (const event of ledger.find({ runId, types: ['input_received'] })) return event as Input
  } catch (error) {
    if (!(error instanceof TallystickError)) throw error
  }
  return undefined
}
