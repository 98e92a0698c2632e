import { type Ledger, type Limits, type RunId, type RuntimeEvent } from '@tallystick/core'
import {
  omitUndefined,
  option,
  readStart,
  requireLedger,
  requireOptions,
  toRunTimes,
} from '@tallystick/core/internal'
import {
  addUsage,
  type EventOf,
  eventTraits,
  type EventType,
  eventTypes,
  type LimitName,
  type RunRecord,
} from '@tallystick/core/vocabulary'
import { isPlain } from '../format/body.ts'
import { type FoundRow, isFull, listParameters, selectLinked, type StoreDatabase } from '../store/database.ts'
import { readFound } from '../store/find-events.ts'
import { getDatabase, getInternals, orElse } from '../store/store.ts'
import { RunAccumulator } from './run-accumulator.ts'
import { toEndedStatus, type RunSummary } from './run-summary.ts'

/**
 * Summaries of those of the runs that have ended, from the few events that say how: the end of a run says what it came
 * to, so nothing is folded. They are what a fold gives. Each event that is read is checked against the chain, and all
 * others are counted.
 *
 * Leaves out what only a fold can tell: runs that have not ended, runs with events that are missing, damaged, unknown or
 * removed, and all runs of a ledger that lends no tables.
 */
export async function summarizeEndedRuns(
  ledger: Ledger,
  runs: readonly Pick<RunRecord, 'runId' | 'head'>[],
): Promise<ReadonlyMap<RunId, RunSummary>> {
  const found = new Map<RunId, RunSummary>()
  const database = getDatabase(ledger)
  if (database === undefined || runs.length === 0) return found
  const whole = await orElse(undefined, () =>
    findWholeRuns(
      database,
      runs.map(({ runId }) => runId),
    ),
  )
  for (const { runId, head } of runs) {
    const isWhole = whole?.get(runId) === head.seq
    const summary = isWhole ? await orElse(undefined, () => summarizeEndedRun(database, runId)) : undefined
    if (summary) found.set(runId, summary)
  }
  return found
}

/** Every type in every version that this release knows, as a list of SQL. */
const knownVersions = Object.entries(eventTraits)
  .flatMap(([type, { v }]) => Array.from({ length: v }, (_, index) => `'${type} ${index + 1}'`))
  .join(', ')

/** Finds the runs that have ended and whose events are all present and known, with their last `seq`. */
async function findWholeRuns(
  database: StoreDatabase,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await database.ask<{ readonly run_id: string; readonly last_seq: number }>(
    `select run_id, max(seq) as last_seq from @.event
      where run_id in (select run_id from @.run where ended_at is not null and run_id in (${listParameters(runIds)}))
      group by run_id
      having count(*) = max(seq) and count(*) = count(*) filter (where type || ' ' || v in (${knownVersions}))`,
    runIds,
  )
  return new Map(rows.map(({ run_id, last_seq }) => [run_id, last_seq]))
}

interface Known {
  readonly start?: EventOf<'run_started'>
  readonly end?: EventOf<'run_finished'>
  /** Of the last feedback behind the end. */
  readonly lastSeq?: number
  readonly limits: Limits
  readonly metLimit?: LimitName | undefined
  readonly children: RunSummary['children']
}

/** The events that say all that a summary has of a run that has ended, with what each adds beside the accumulated part. */
const takes: { readonly [T in EventType]: ((known: Known, event: EventOf<T>) => Known) | null } = {
  run_started: (known, start) => ({ ...known, start, limits: start.limits }),
  schedule_set: null,
  schedule_fired: null,
  history_carried: null,
  session_edited: null,
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
  approval_added: null,
  approval_applied: null,
  approval_withdrawn: null,
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
  background_ended: null,
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
  feedback_given: (known, { seq }) => ({ ...known, lastSeq: seq }),
}

const summaryTypes = eventTypes.filter((type) => takes[type] !== null)

/** The events of a run that say how it ended, in order; prepared once, since a list asks it of each run. */
const endingRows = selectLinked(
  `event.run_id = $1 and event.seq > $2 and event.type in (${summaryTypes.map((type) => `'${type}'`).join(', ')})`,
)

/** `undefined` if an event needs more than its own text, or has lost some: what is left is not all that it said. */
async function summarizeEndedRun(database: StoreDatabase, ofRun: RunId): Promise<RunSummary | undefined> {
  const accumulator = new RunAccumulator()
  let known: Known = { limits: {}, children: { runs: 0, turns: 0, toolCalls: 0 } }
  for (let after: number | undefined = 0; after !== undefined;) {
    const rows: readonly FoundRow[] = await database.askBatch(endingRows, ['seq'], [ofRun, after])
    for (const row of rows) {
      const event = isPlain(row) ? readFound(row) : undefined
      if (event === undefined || event.removed !== undefined) return undefined
      accumulator.add(event)
      const take = takes[event.type] as ((known: Known, event: RuntimeEvent) => Known) | null
      if (take) known = take(known, event)
    }
    const last: number | undefined = isFull(rows) ? rows.at(-1)?.seq : undefined
    // An index that is out of order would have the same batch read for ever.
    if (last !== undefined && last <= after) return undefined
    after = last
  }
  const { start, end, limits, metLimit: limit, children } = known
  if (start === undefined || end === undefined) return undefined
  const { agents, childRunIds, calls, lastCalls, failedAttempts, feedback } = accumulator.run
  const { sessionId, sessionPlace, parent, subject } = start
  const { lastSeq = end.seq } = known
  const { runId, turn, at, reason, detail, turns, toolCalls, usage, costUsd } = end
  return {
    ...{ runId, status: toEndedStatus(reason), seq: lastSeq, turn },
    ...toRunTimes({ runId, startedAt: start.at, at, ...omitUndefined({ parent }) }),
    ...{ agent: agents.at(-1) ?? start.agent, agents },
    ...omitUndefined({ sessionId, sessionPlace, parent, subject }),
    reason,
    ...(detail !== undefined && { hasDetail: true as const }),
    ...{ isStreaming: false, started: [] },
    waits: {
      ...{ approvals: [], deferred: [], children: [] },
      ...(limit && { limit: { limit, ...omitUndefined({ max: limits[limit] }) } }),
    },
    ...{ calls, lastCalls, failedAttempts, childRunIds, turns, toolCalls, children },
    usage: addUsage({}, usage),
    ...omitUndefined({ costUsd, feedback }),
  }
}

const runIdList = option.listOf(option.anyText)

type Input = EventOf<'input_received'>

/** Each search holds a batch of its run, and waits for a connection where a database has few. */
const searchesAtOnce = 64

/**
 * Returns the event with the first input of each run. Leaves out runs without one, and runs whose first input cannot be
 * read.
 */
export async function readFirstInputs(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, Input>> {
  requireLedger('readFirstInputs', ledger)
  requireOptions('readFirstInputs', runIdList, runIds, 'the list of run ids')
  const found = new Map<RunId, Input>()
  for (let index = 0; index < runIds.length; index += searchesAtOnce) {
    await Promise.all(
      runIds.slice(index, index + searchesAtOnce).map((runId) =>
        orElse(undefined, async () => {
          for await (const event of ledger.find({ runId, types: ['input_received'] })) {
            found.set(runId, event as Input)
            break
          }
        }),
      ),
    )
  }
  return found
}

/** How a run began. Each is absent if the run has none, or it cannot be read. */
export interface RunBeginning {
  readonly start?: EventOf<'run_started'>
  /** The first input. */
  readonly input?: Input
}

/** Nearly every run has its first input by then. */
const earlySeq = 4

/** Returns how runs began: of a ledger of this package with one statement, where their first events say it. */
export async function readBeginnings(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<RunId, RunBeginning>> {
  requireLedger('readBeginnings', ledger)
  requireOptions('readBeginnings', runIdList, runIds, 'the list of run ids')
  const early = await orElse(new Map<string, RunBeginning>(), () => readEarly(ledger, runIds))
  const late = await readFirstInputs(
    ledger,
    runIds.filter((runId) => early.get(runId)?.input === undefined),
  )
  const found = new Map<RunId, RunBeginning>()
  for (const runId of runIds) {
    const { start = await orElse(undefined, () => readStart(ledger, runId)), input = late.get(runId) } =
      early.get(runId) ?? {}
    found.set(runId, omitUndefined({ start, input }))
  }
  return found
}

async function readEarly(ledger: Ledger, runIds: readonly RunId[]): Promise<Map<string, RunBeginning>> {
  const found = new Map<string, RunBeginning>()
  const internals = getInternals(ledger)
  if (internals === undefined || runIds.length === 0) return found
  const rows = await internals.store.database.askBatch<FoundRow>(
    selectLinked(
      `event.run_id in (${listParameters(runIds)}) and event.seq <= ${earlySeq} and event.type in ('run_started', 'input_received')`,
    ),
    ['run_id', 'seq'],
    runIds,
  )
  for (const row of await internals.rows.readable(rows)) {
    // A damaged event says nothing, and hides no other run.
    const event = await orElse(undefined, async () => readFound(row))
    if (event === undefined) continue
    const before = found.get(event.runId) ?? {}
    if (event.type === 'run_started') found.set(event.runId, { ...before, start: event })
    if (event.type === 'input_received' && before.input === undefined) {
      found.set(event.runId, { ...before, input: event })
    }
  }
  return found
}
