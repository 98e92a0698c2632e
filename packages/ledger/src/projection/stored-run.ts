import { type Ledger, type RunId, TallystickError } from '@tallystick/core'
import { limitNames, type ModelRef, parseToolCallId } from '@tallystick/core/vocabulary'
import { isRunId } from '../format/event-row.ts'
import { foldStoredRun } from './fold-to.ts'
import {
  type AccumulatedRun,
  addAmounts,
  amountColumns,
  type Amounts,
  noAmounts,
  RunAccumulator,
  formatSpendingKey,
  type SpendingLine,
  toKey,
} from './run-accumulator.ts'
import {
  type ListedRun,
  toSummaryRecord,
  type RunStatus,
  type Shares,
  type SummaryRecord,
  toUnreadableRecord,
} from './run-summary.ts'

/** A run's row in the store: where its history ends. */
export interface RunPlace {
  readonly runId: RunId
  /** By which runs are listed, the newest first. */
  readonly pos: number
  readonly headSeq: number
  readonly headHash: string
}

/** The columns of a run's projection. */
export interface StoredRunRow {
  readonly run_id: string
  readonly pos: number
  readonly seq: number
  /** Of the event `seq`, to which the row is bound. */
  readonly head_hash: string
  readonly status: string
  readonly session_id: string | null
  readonly started_at: number
  readonly last_at: number
  /** Who had the conversation, as keys, as JSON. */
  readonly agents: string
  /** The run's share of the totals, as JSON. */
  readonly shares: string
  /** As JSON; null where the row has to be made anew. */
  readonly summary: string | null
  readonly notes: string | null
}

/** A run's projection as the store has it. */
export interface StoredRun {
  readonly runId: RunId
  readonly pos: number
  readonly seq: number
  readonly headHash: string
  readonly status: RunStatus
  /** As a key. */
  readonly session?: string
  readonly startedAt: number
  readonly lastAt: number
  readonly shares: Shares
  /** Absent where the row has to be made anew. */
  readonly summary?: ListedRun
  readonly accumulated?: AccumulatedRun
}

/** Parses a row; `undefined` if it is not as it was written. */
export function parseRunRow(row: StoredRunRow): StoredRun | undefined {
  try {
    const summary = parsed(row.summary) as ListedRun | undefined
    const accumulated = parsed(row.notes) as AccumulatedRun | undefined
    const shares = JSON.parse(row.shares) as Shares
    if (!isRunId(row.run_id) || !isSound({ summary, shares, accumulated }, row.run_id)) return undefined
    return {
      runId: row.run_id,
      pos: row.pos,
      seq: row.seq,
      headHash: row.head_hash,
      status: row.status as RunStatus,
      ...(row.session_id !== null && { session: row.session_id }),
      startedAt: row.started_at,
      lastAt: row.last_at,
      shares,
      ...(summary && { summary }),
      ...(accumulated && { accumulated }),
    }
  } catch {
    return undefined
  }
}

/** The columns of a row that are JSON. */
interface ParsedParts {
  readonly summary: ListedRun | undefined
  readonly shares: Shares
  readonly accumulated: AccumulatedRun | undefined
}

function parsed(json: string | null): unknown {
  return json === null ? undefined : JSON.parse(json)
}

function isSound({ summary, shares, accumulated }: ParsedParts, runId: RunId): boolean {
  if (summary !== undefined && !hasIds(summary, runId)) return false
  return canBeSummed(shares) && (accumulated === undefined || canBeContinued(accumulated))
}

/**
 * Checks the ids in a summary. Rows of projections are outside the chain, so any writer of the database
 * may have made them.
 */
function hasIds(summary: ListedRun, runId: RunId): boolean {
  if (summary.runId !== runId) return false
  if (summary.status === 'unreadable') return true
  const { parent, started, waits, childRunIds } = summary
  const calls = [...started, ...waits.approvals, ...waits.deferred, ...waits.children]
  const runIds = [
    ...childRunIds,
    ...waits.children.map((each) => each.runId),
    ...(parent ? [parent.runId] : []),
  ]
  const limit = waits.limit?.limit
  return (
    Array.isArray(summary.calls) &&
    calls.every(({ toolCallId }) => parseToolCallId(toolCallId) !== undefined) &&
    runIds.every(isRunId) &&
    (limit === undefined || limitNames.includes(limit))
  )
}

/** Notes are outside the chain, too: checks that a projection can continue from them. */
function canBeContinued(notes: AccumulatedRun): boolean {
  const { agents, childRunIds, calls, open, settled, failedAttempts, sharedSeq, summaries } = notes
  return (
    agents.every(isText) &&
    childRunIds.every(isRunId) &&
    calls.every(({ name, outcome, count }) => [name, outcome].every(isText) && isNumber(count)) &&
    settled.every(isLine) &&
    open.every(
      ({ key, agent, model, turn, at }) =>
        isModel(model) && [key, agent].every(isText) && [turn, at].every(isNumber),
    ) &&
    [failedAttempts, sharedSeq, summaries].every(isNumber)
  )
}

/** Shares are outside the chain, too: checks that totals can be summed up from them. */
function canBeSummed({ spending, session }: Shares): boolean {
  const isSession = session === undefined || (isText(session.sessionId) && areCounts(session, sessionCounts))
  return isSession && spending.every(isLine)
}

function isLine(line: SpendingLine): boolean {
  return isText(line.agent) && isModel(line.model) && areCounts(line, lineCounts)
}

function isModel({ provider, api, modelId }: ModelRef): boolean {
  return [provider, api, modelId].every(isText)
}

const sessionCounts = ['turns', 'toolCalls'] as const
const lineCounts = ['hour', 'calls'] as const

function areCounts<Name extends string>(
  counted: { readonly amounts: Amounts } & Readonly<Record<Name, number>>,
  names: readonly Name[],
): boolean {
  const { amounts } = counted
  const counts = [...names.map((name) => counted[name]), ...amountColumns.map((column) => amounts[column])]
  return counts.every(isNumber)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number'
}

/** The row that is to hold a record. */
export function toRunRow({ runId, pos, headHash }: RunPlace, record: SummaryRecord): StoredRunRow {
  const { summary, shares, accumulated } = record
  const times = 'startedAt' in summary ? summary : { startedAt: 0, lastAt: 0, agents: [] }
  return {
    run_id: runId,
    pos,
    seq: summary.seq,
    head_hash: headHash,
    status: summary.status,
    session_id: shares.session ? toKey(shares.session.sessionId) : null,
    started_at: times.startedAt,
    last_at: times.lastAt,
    agents: JSON.stringify([...new Set(times.agents.map(toKey))]),
    shares: JSON.stringify(shares),
    summary: JSON.stringify(summary),
    notes: accumulated ? JSON.stringify(accumulated) : null,
  }
}

/** Codes of errors that are about the record of one run, and say nothing about the others. */
const ofOneRun: ReadonlySet<string> = new Set([
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
])

function isOfOneRun(error: unknown): error is TallystickError {
  return error instanceof TallystickError && ofOneRun.has(error.code)
}

/** The accumulated part of a run after one of its earlier events. */
export interface NotedSeq {
  readonly seq: number
  readonly accumulated: AccumulatedRun
}

/** Returns the notes of a row if its run has had more events since. */
export function knownBefore(
  headSeq: number,
  row: Pick<StoredRun, 'seq' | 'accumulated'> | undefined,
): NotedSeq | undefined {
  return row?.accumulated && row.seq < headSeq ? { seq: row.seq, accumulated: row.accumulated } : undefined
}

/**
 * Projects a run after its event `toSeq`, starting from its known projection. Reports a run that cannot be read as
 * unreadable, and throws faults of the store itself. `undefined` if the run has no events.
 */
export async function projectRun(
  ledger: Ledger,
  runId: RunId,
  toSeq: number,
  known?: NotedSeq,
): Promise<SummaryRecord | undefined> {
  const accumulator = new RunAccumulator(known?.accumulated)
  try {
    const folded = await foldStoredRun(ledger, runId, {
      toSeq,
      usesSnapshots: true,
      onEventAfter: known?.seq ?? 0,
      onEvent: (event) => accumulator.add(event),
    })
    return folded && toSummaryRecord(folded.state, accumulator.run)
  } catch (error) {
    if (!isOfOneRun(error)) throw error
    // What was known may be what is wrong.
    if (known) return await projectRun(ledger, runId, toSeq)
    return toUnreadableRecord(runId, toSeq, error)
  }
}

/** The change of a session's totals, and when its runs begin and end with it. */
export interface SessionChange extends Amounts {
  readonly session_id: string
  readonly runs: number
  readonly started_at: number
  readonly last_at: number
  readonly turns: number
  readonly tool_calls: number
}

/** The change of the totals of an hour, agent and model. */
export interface SpendingChange extends Amounts {
  readonly hour: number
  readonly agent: string
  readonly provider: string
  readonly api: string
  readonly model_id: string
  readonly calls: number
}

export interface TotalsChange {
  readonly sessions: readonly SessionChange[]
  readonly spending: readonly SpendingChange[]
}

export interface TimedShares {
  readonly shares: Shares
  readonly startedAt: number
  readonly lastAt: number
}

export function toTimedShares({ shares, summary }: SummaryRecord): TimedShares {
  const { startedAt, lastAt } = 'startedAt' in summary ? summary : { startedAt: 0, lastAt: 0 }
  return { shares, startedAt, lastAt }
}

/** When the runs of a session began and continued. */
export interface SessionTimes {
  readonly started_at: number
  readonly last_at: number
}

/** Gathers what totals gain and lose when runs come in the place of what was known of them. */
export class TotalsAccumulator {
  readonly #sessions = new Map<string, SessionChange>()
  readonly #spending = new Map<string, SpendingChange>()

  add({ shares, ...times }: TimedShares): void {
    this.#count(shares, 1)
    const { session } = shares
    if (session) this.within(toKey(session.sessionId), { started_at: times.startedAt, last_at: times.lastAt })
  }

  remove({ shares }: Pick<TimedShares, 'shares'>): void {
    this.#count(shares, -1)
  }

  /** The keys of the sessions that are concerned. */
  get sessionKeys(): readonly string[] {
    return [...this.#sessions.keys()]
  }

  /** Some of a session's runs began and continued then. */
  within(key: string, { started_at, last_at }: SessionTimes): void {
    const line = this.#sessions.get(key) ?? emptySession(key)
    const earlier = line.last_at === 0 ? started_at : Math.min(line.started_at, started_at)
    this.#sessions.set(key, { ...line, started_at: earlier, last_at: Math.max(line.last_at, last_at) })
  }

  /** The change, without lines that stay the same. */
  get change(): TotalsChange {
    return {
      sessions: [...this.#sessions.values()],
      spending: [...this.#spending.values()].filter(isChange),
    }
  }

  #count({ session, spending }: Shares, sign: 1 | -1): void {
    for (const line of spending) this.#countSpending(line, sign)
    if (session === undefined) return
    const { sessionId, turns, toolCalls, amounts } = session
    const key = toKey(sessionId)
    const before = this.#sessions.get(key) ?? emptySession(key)
    this.#sessions.set(key, {
      ...before,
      ...addAmounts(before, amounts, sign),
      runs: before.runs + sign,
      turns: before.turns + sign * turns,
      tool_calls: before.tool_calls + sign * toolCalls,
    })
  }

  #countSpending(line: SpendingLine, sign: 1 | -1): void {
    const key = formatSpendingKey(line)
    const before = this.#spending.get(key) ?? emptySpending(line)
    this.#spending.set(key, {
      ...before,
      ...addAmounts(before, line.amounts, sign),
      calls: before.calls + sign * line.calls,
    })
  }
}

function emptySession(session_id: string): SessionChange {
  return { ...noAmounts, session_id, runs: 0, started_at: 0, last_at: 0, turns: 0, tool_calls: 0 }
}

function emptySpending({ hour, agent, model }: SpendingLine): SpendingChange {
  const [key, provider, api, model_id] = [agent, model.provider, model.api, model.modelId].map(toKey)
  return {
    ...noAmounts,
    hour,
    calls: 0,
    agent: key ?? '',
    provider: provider ?? '',
    api: api ?? '',
    model_id: model_id ?? '',
  }
}

function isChange(change: SpendingChange): boolean {
  return change.calls !== 0 || amountColumns.some((column) => change[column] !== 0)
}
