import { LedgerConflictError } from '../../values/errors.ts'
import { transcript } from '../../machine/request.ts'
import type { Ledger, RunRecord } from '../../ledger/ledger.ts'
import type { Message } from '../../events/content.ts'
import type { RunId } from '../../values/ids.ts'
import { stateOf } from '../reading/load-state.ts'

/** A conversation: the runs that share a history, in order. */
export interface Session {
  readonly id: string
  /** The runs of the session, the newest first. */
  runs(): AsyncIterable<RunRecord>
  /** The history that its next run begins with, and where it was recorded; `undefined` before its first run. */
  history(): Promise<
    { readonly runId: RunId; readonly seq: number; readonly messages: readonly Message[] } | undefined
  >
}

/** Returns a session as the ledger records it. */
export function sessionView(ledger: Ledger, id: string): Session {
  return {
    id,
    runs: () => ledger.runs({ sessionId: id }),
    async history() {
      const last = await lastOf(ledger, id)
      const state = last && (await stateOf(ledger, last.runId))
      return state && { runId: state.runId, seq: state.seq, messages: transcript(state) }
    },
  }
}

/** Whether a run could not begin because another run has its place in the session. */
export function isPlaceTaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && error.kind === 'unique'
}

/** Returns whether a run has begun; `false` if another run of its session has not ended. */
export async function unlessSessionBusy(begun: Promise<unknown>): Promise<boolean> {
  try {
    await begun
    return true
  } catch (error) {
    const isBusy = error instanceof LedgerConflictError && error.busy !== undefined
    if (isBusy || isPlaceTaken(error)) return false
    throw error
  }
}

/** The last run of a session. */
export async function lastOf(ledger: Ledger, sessionId: string): Promise<RunRecord | undefined> {
  for await (const record of ledger.runs({ sessionId, limit: 1 })) return record
  return undefined
}
