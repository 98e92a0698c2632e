import { type RunId } from '@tallystick/core'
import { limitNames, parseToolCallId, type ModelRef } from '@tallystick/core/vocabulary'
import { storableKey } from '../tables/storable-key.ts'
import { isRunId } from '../../format/stored-ids.ts'
import { amountColumns, type Amounts } from '../tables/amounts.ts'
import type { AccumulatedRun, SpendingLine } from './run-accumulator.ts'
import type { ListedRun, RunStatus } from './run-summary.ts'
import type { Shares, SummaryRecord } from './summary-record.ts'

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

/** What a row holds; `undefined` where it is not as it was written. */
export function storedRun(row: StoredRunRow): StoredRun | undefined {
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

/** Whether what a row holds can be built on. */
function isSound({ summary, shares, accumulated }: ParsedParts, runId: RunId): boolean {
  if (summary !== undefined && !hasIds(summary, runId)) return false
  return canBeSummed(shares) && (accumulated === undefined || canBeContinued(accumulated))
}

/**
 * Whether the ids in a summary are valid. Rows of projections are outside the chain, so any writer of the database
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

/** Whether a run that has had more events since can be projected from these notes, which are outside the chain, too. */
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

/** Whether totals can be summed up from shares, which are outside the chain, too. */
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
export function writtenRun({ runId, pos, headHash }: RunPlace, record: SummaryRecord): StoredRunRow {
  const { summary, shares, accumulated } = record
  const times = 'startedAt' in summary ? summary : { startedAt: 0, lastAt: 0, agents: [] }
  return {
    run_id: runId,
    pos,
    seq: summary.seq,
    head_hash: headHash,
    status: summary.status,
    session_id: shares.session ? storableKey(shares.session.sessionId) : null,
    started_at: times.startedAt,
    last_at: times.lastAt,
    agents: JSON.stringify([...new Set(times.agents.map(storableKey))]),
    shares: JSON.stringify(shares),
    summary: JSON.stringify(summary),
    notes: accumulated ? JSON.stringify(accumulated) : null,
  }
}
