import type { RunId } from '@tallystick/core'
import type { SessionPlace } from '@tallystick/core/store-kit'
import type { RunRecord } from '@tallystick/core/vocabulary'

/** The columns of a run's row that a list shows, under the names that they have in every store of this package. */
export interface ListedRow {
  readonly run_id: string
  readonly head_seq: number
  readonly epoch: number
  readonly session_id: string | null
  readonly session_place: number | null
}

/** A run as a list shows it. Its id was checked before. */
export function recordOf(row: ListedRow): RunRecord {
  const { run_id, head_seq, epoch } = row
  return { runId: run_id as RunId, head: { seq: head_seq, epoch }, ...sessionOf(row) }
}

/** Returns the session of a run and its place there, if it belongs to one. */
export function sessionOf({
  session_id,
  session_place,
}: Pick<ListedRow, 'session_id' | 'session_place'>): SessionPlace | undefined {
  if (session_id === null || session_place === null) return undefined
  return { sessionId: session_id, sessionPlace: session_place }
}
