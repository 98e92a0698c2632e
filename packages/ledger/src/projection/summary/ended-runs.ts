import { TallystickError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { runTimes } from '@tallystick/core/machine'
import { omitUndefined } from '@tallystick/core/kit'
import {
  addUsage,
  type EventOf,
  type EventType,
  type LimitName,
  type Limits,
  type RunRecord,
} from '@tallystick/core/vocabulary'
import { isPlain } from '../../format/body.ts'
import { readFound, type FoundRow } from '../../store/find-events.ts'
import { projectionDatabaseOf, type ProjectionDatabase } from '../tables/projection-database.ts'
import { RunAccumulator } from './run-accumulator.ts'
import type { RunSummary } from './run-summary.ts'
import { endedStatus } from './summary-record.ts'
import { outlinesOf, rowsOfTypes } from './summary-rows.ts'

/** The events that say all that a summary has of a run that has ended. */
const summaryTypes: readonly EventType[] = [
  ...(['run_started', 'agent_handed_off', 'tool_started', 'tool_result', 'model_stream_failed'] as const),
  ...(['limit_reached', 'limit_raised', 'run_finished'] as const),
]

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
export async function endedRuns(
  ledger: Ledger,
  runs: readonly ListedHead[],
): Promise<ReadonlyMap<RunId, RunSummary>> {
  const found = new Map<RunId, RunSummary>()
  const database = projectionDatabaseOf(ledger)
  if (database === undefined || runs.length === 0) return found
  try {
    for (const some of await readable(database, runs)) {
      for (const [runId, ending] of await endingsOf(database, some)) {
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
async function readable(
  database: ProjectionDatabase,
  runs: readonly ListedHead[],
): Promise<readonly Together[]> {
  const heads = new Map<string, ListedHead>(runs.map((run) => [run.runId, run]))
  const groups: Together[] = []
  for (const outline of await outlinesOf(database, [...heads.values()].map(idOf), summaryTypes)) {
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
async function endingsOf(
  database: ProjectionDatabase,
  { runIds, toSeq: lastSeq, rows }: Together,
): Promise<ReadonlyMap<RunId, Ending>> {
  const endings = new Map<RunId, Ending>()
  const parts = runIds.length === 1 ? Math.ceil(rows / rowsAtOnce) : 1
  const width = Math.ceil(lastSeq / parts)
  for (let fromSeq = 1; fromSeq <= lastSeq; fromSeq += width) {
    const toSeq = Math.min(fromSeq + width - 1, lastSeq)
    const found = await rowsOfTypes(database, { runIds, types: summaryTypes, fromSeq, toSeq })
    for (const [runId, ofRun] of Map.groupBy(found, ({ run_id }) => run_id as RunId)) {
      const ending = endings.get(runId) ?? new Ending()
      endings.set(runId, ending)
      for (const row of ofRun.toSorted((a, b) => a.seq - b.seq)) ending.handle(row)
    }
  }
  return endings
}

/** What the events of one run say about its end. */
class Ending {
  readonly #accumulator = new RunAccumulator()
  #start: EventOf<'run_started'> | undefined
  #end: EventOf<'run_finished'> | undefined
  #limits: Limits = {}
  #metLimit: LimitName | undefined
  #children: RunSummary['children'] = { runs: 0, turns: 0, toolCalls: 0 }
  #isReadable = true

  handle(row: FoundRow): void {
    if (!this.#isReadable) return
    const event = eventOf(row)
    if (event === undefined) this.#isReadable = false
    else this.#take(event)
  }

  get summary(): RunSummary | undefined {
    const [start, end] = [this.#start, this.#end]
    if (!this.#isReadable || start === undefined || end === undefined) return undefined
    const { agents, childRunIds, calls, failedAttempts } = this.#accumulator.run
    const { sessionId, sessionPlace, parent } = start
    const { runId, seq, turn, at, reason, detail, turns, toolCalls, usage, costUsd } = end
    const limit = this.#metLimit
    return {
      ...{ runId, status: endedStatus(reason), seq, turn },
      ...runTimes({ runId, startedAt: start.at, at, ...omitUndefined({ parent }) }),
      ...{ agent: agents.at(-1) ?? start.agent, agents },
      ...omitUndefined({ sessionId, sessionPlace, parent }),
      reason,
      ...(detail !== undefined && { hasDetail: true as const }),
      ...{ isStreaming: false, started: [] },
      waits: {
        ...{ approvals: [], deferred: [], children: [] },
        ...(limit && { limit: { limit, ...omitUndefined({ max: this.#limits[limit] }) } }),
      },
      ...{ calls, failedAttempts, childRunIds, turns, toolCalls, children: this.#children },
      usage: addUsage({}, usage),
      ...omitUndefined({ costUsd }),
    }
  }

  #take(event: RuntimeEvent): void {
    // What is left of an event is not all that it said.
    if (event.removed) this.#isReadable = false
    this.#accumulator.add(event)
    if (event.type === 'run_started') {
      this.#start = event
      this.#limits = event.limits
    }
    if (event.type === 'limit_reached') this.#metLimit = event.limit
    if (event.type === 'limit_raised') {
      this.#limits = { ...this.#limits, [event.limit]: event.max }
      if (this.#metLimit === event.limit) this.#metLimit = undefined
    }
    if (event.type === 'tool_result' && event.child) {
      const { runs, turns, toolCalls } = this.#children
      const { turns: childTurns, toolCalls: childCalls } = event.child
      this.#children = { runs: runs + 1, turns: turns + childTurns, toolCalls: toolCalls + childCalls }
    }
    if (event.type === 'run_finished') this.#end = event
  }
}

/** The event of a row; `undefined` if the row has changed, or needs more than its own text. */
function eventOf(row: FoundRow): RuntimeEvent | undefined {
  if (!isPlain(row)) return undefined
  try {
    return readFound(row)
  } catch (error) {
    if (error instanceof TallystickError) return undefined
    throw error
  }
}
