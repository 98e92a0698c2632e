import type { StartCommand } from '../events/commands.ts'
import type { Message } from '../events/content.ts'
import type { HistoryEdit } from '../events/event.ts'
import type { Ledger, RunRecord } from '../ledger/ledger.ts'
import { carryStanding } from '../machine/approvals.ts'
import { withEdits } from '../machine/evolve.ts'
import { findPairingFault } from '../machine/history.ts'
import { carryTranscript, toTranscript } from '../machine/request.ts'
import type { RunState } from '../machine/state.ts'
import { ConfigurationError, LedgerConflictError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId, type RunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { createBusySessionError, readNewerHead, waitUntilEnded } from './follow-run.ts'
import { loadState } from './run-result.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/** The history that the next run of a session begins with, and where it was recorded. */
export interface SessionHistory {
  readonly runId: RunId
  readonly seq: number
  readonly messages: readonly Message[]
}

/** A conversation: the runs that share a history, in order. */
export interface Session {
  readonly id: string
  /** The runs of the session, the newest first: its edits are among them, as runs without a turn. */
  runs(): AsyncIterable<RunRecord>
  /** The history that its next run begins with; `undefined` before its first run. */
  history(): Promise<SessionHistory | undefined>
}

export function createSessionView(ledger: Ledger, id: string): Session {
  return {
    id,
    runs: () => ledger.runs({ sessionId: id }),
    async history() {
      const last = await readLastRun(ledger, id)
      const state = last && (await loadState(ledger, last.runId))
      return state && toHistory(state)
    },
  }
}

/** The history of a session whose last run is in this state. */
export function toHistory(state: RunState): SessionHistory {
  return { runId: state.runId, seq: state.seq, messages: toTranscript(state) }
}

/** True for the error of a run whose place in its session another run has taken. */
export function isPlaceTaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && error.kind === 'unique'
}

/** Returns whether a run has begun; `false` if another run of its session has not ended. */
export async function awaitBegun(begun: Promise<unknown>): Promise<boolean> {
  try {
    await begun
    return true
  } catch (error) {
    const isBusy = error instanceof LedgerConflictError && error.busy !== undefined
    if (isBusy || isPlaceTaken(error)) return false
    throw error
  }
}

export async function readLastRun(ledger: Ledger, sessionId: string): Promise<RunRecord | undefined> {
  for await (const record of ledger.runs({ sessionId, limit: 1 })) return record
  return undefined
}

/** Changes of what was said before, on record with who made them and why. */
export interface PastEdits {
  /** The run whose history the places refer to: the one that the new run follows. */
  readonly of: string
  /** In ascending order of their places. Calls and results stay paired. */
  readonly edits: readonly HistoryEdit[]
  readonly by?: string | undefined
  readonly reason?: string | undefined
}

export interface PastOptions {
  /** The conversation that the run belongs to: it begins with the history of the session's last run. */
  readonly sessionId?: string | undefined
  /**
   * Decides what happens when a run of the session is under way, or waits for a person: `conflict` (the default) rejects
   * the result with a `LedgerConflictError` of kind `session`, whose `busy` names that run and its status; `wait` starts
   * the run when that one has ended. Waiting ends with the same error if that run was interrupted, so that only `resume`
   * continues it.
   */
  readonly whenBusy?: 'conflict' | 'wait' | undefined
  /**
   * Begins with the history of another run, up to an event: with a new `sessionId` a branch of its session, with the
   * same one a step back.
   */
  readonly from?: { readonly runId: string; readonly atSeq?: number | undefined } | undefined
  /** Changes of past messages that the run sees. */
  readonly edit?: PastEdits | undefined
  /**
   * Called with the run that this one would follow in its session, at each attempt to take the place behind it: what it
   * throws, or rejects with, refuses the start. Only one run takes a place, so what it was asked about is what the run
   * begins with. Not called for the first run of a session.
   */
  readonly mayFollow?: ((runId: RunId) => void | Promise<void>) | undefined
}

/** The fields of a start command about the past. */
export type Past = Pick<
  StartCommand,
  'sessionId' | 'sessionPlace' | 'parent' | 'subject' | 'standing' | 'history' | 'uncheckedFrom' | 'edits'
>

/**
 * Returns the recorded history that a run begins with, perhaps about a subject that it names. If the options say so, waits for
 * the run before it.
 */
export async function readPast(parts: RuntimeParts, options: PastOptions, subject?: string): Promise<Past> {
  const { ledger } = parts
  const { sessionId, from, edit, mayFollow } = options
  const last = sessionId === undefined ? undefined : await readLastRun(ledger, sessionId)
  if (last) await mayFollow?.(last.runId)
  const before = last && (await readEndedRun(last, parts, options))
  const source = from ? await findBranchPoint(ledger, from) : before
  // Who approved a call about one person was asked about no other.
  const isAboutSame = (subject ?? source?.subject) === before?.subject
  const standing = before && isAboutSame ? carryStanding(before, parts.host.clock.now()) : []
  const isOfSession = sessionId !== undefined && source?.sessionId === sessionId
  return {
    ...(sessionId !== undefined && { sessionId, sessionPlace: (last?.sessionPlace ?? 0) + 1 }),
    ...(source && toPast(source, isOfSession ? 'session' : 'branch')),
    ...(edit && toEdits(edit, source)),
    ...(standing.length > 0 && { standing }),
  }
}

function toPast(source: RunState, relation: 'session' | 'branch'): Past {
  const history = carryTranscript(source)
  const parent = { runId: source.runId, seq: source.seq, relation }
  const carried =
    history.length === 0 ? {} : { history, ...omitUndefined({ uncheckedFrom: findUnchecked(source) }) }
  return { parent, ...carried, ...omitUndefined({ subject: source.subject }) }
}

/** The place of the first message that no guardrail has checked. */
function findUnchecked({ inputCheck, sessionEdit }: RunState): number | undefined {
  return inputCheck?.from ?? sessionEdit?.uncheckedFrom
}

function toEdits({ of, edits, by, reason }: PastEdits, source: RunState | undefined): Past {
  if (of !== source?.runId) {
    const what = source ? `follows run ${source.runId}` : 'has no past'
    throw new LedgerConflictError(
      'session',
      `The edits belong to the history of run ${of}, but this run ${what}: their places may mean other messages. Nothing ` +
        'was written. Read the history again, and decide again.',
    )
  }
  requireSoundEdits(of, edits, toTranscript(source))
  return { edits: { edits, ...omitUndefined({ by, reason }) } }
}

async function readEndedRun(
  last: RunRecord,
  parts: RuntimeParts,
  { whenBusy = 'conflict' }: PastOptions,
): Promise<RunState | undefined> {
  const { ledger, runs } = parts
  const { runId } = last
  const state = await loadState(ledger, runId)
  if (state === undefined || state.phase === 'done') return state
  if (whenBusy === 'wait') return await waitUntilEnded(state, parts)
  const isDriven = await runs.isDriven(runId)
  const head = isDriven ? undefined : await readNewerHead(ledger, state)
  if (head) return await readEndedRun({ ...last, head }, parts, { whenBusy })
  throw createBusySessionError(state, isDriven)
}

async function findBranchPoint(
  ledger: Ledger,
  { runId: text, atSeq }: NonNullable<PastOptions['from']>,
): Promise<RunState> {
  const runId = parseRunId(text)
  const state = runId && (await loadState(ledger, runId, atSeq))
  if (state === undefined) throw new RunNotFoundError(text)
  if (atSeq === undefined || state.seq === atSeq) return state
  throw new ConfigurationError(
    `Run ${text} ends at event ${state.seq}; a run cannot begin from its event ${atSeq}. Name one up to ${state.seq}, or none for its end.`,
  )
}

/** Law 3: refuses edits that no provider would accept, before anything is written. */
export function requireSoundEdits(
  of: string,
  edits: readonly HistoryEdit[],
  history: readonly Message[],
): void {
  const edited = withEdits(history, edits)
  const fault = edited
    ? findPairingFault(edited)
    : `they have to name places from 0 to ${history.length - 1}, ascending`
  if (fault === undefined) return
  throw new ConfigurationError(
    `The edits of the history of run ${of} cannot be made: ${fault}. Remove a message together with its tool results.`,
  )
}
