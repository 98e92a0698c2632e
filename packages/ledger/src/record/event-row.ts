import { LedgerDamagedError, type RunId } from '@tallystick/core'
import { type ToolCallId } from '@tallystick/core/vocabulary'
import type { DecodingContext } from '../content/payload/decoding-context.ts'
import type { Referred } from '../content/payload/externalized-payload.ts'
import type { StoredRemoval } from './removal.ts'
import type { StoredRow } from './stored-row.ts'

/**
 * The columns of a row of events and of its payload, under the names that they have in
 * every store of this package.
 */
export interface EventRow {
  readonly pos: number
  readonly run_id: string
  /** Of the first event, where the row holds several; `seq` and `at` are those of the last. */
  readonly first_seq: number | null
  readonly seq: number
  readonly epoch: number
  readonly type: string
  readonly v: number
  readonly turn: number
  readonly tool_call_id: string | null
  readonly at: number
  readonly once_key: string | null
  readonly body_commit: Uint8Array
  readonly hash: Uint8Array
  /** Null, as `body` is, where the payload is gone. */
  readonly salt: Uint8Array | null
  readonly body: Uint8Array | null
  /** No columns: what was found beside the row that it needs to be read. */
  readonly removal?: StoredRemoval
  readonly removals?: readonly StoredRemoval[]
  readonly decoding?: DecodingContext
  readonly referred?: Referred
}

/** What a row holds. Types are as the row says: a row that was changed by hand may hold anything. */
export function storedRow(row: EventRow): StoredRow {
  const stored: { -readonly [Field in keyof StoredRow]: StoredRow[Field] } = {
    runId: row.run_id as RunId,
    seq: row.seq,
    epoch: row.epoch,
    turn: row.turn,
    type: row.type as StoredRow['type'],
    v: row.v,
    at: row.at,
    pos: row.pos,
    bodyCommit: row.body_commit,
    hash: row.hash,
  }
  if (row.salt !== null && row.body !== null) stored.payload = { salt: row.salt, body: row.body }
  if (row.first_seq !== null) stored.firstSeq = row.first_seq
  if (row.tool_call_id !== null) stored.toolCallId = row.tool_call_id as ToolCallId
  if (row.once_key !== null) stored.onceKey = row.once_key
  if (row.removal) stored.removal = row.removal
  if (row.removals) stored.removals = row.removals
  if (row.decoding) stored.decoding = row.decoding
  if (row.referred) stored.referred = row.referred
  return stored
}

/** How many events a row holds. */
export function eventsIn({ first_seq, seq }: Pick<EventRow, 'first_seq' | 'seq'>): number {
  return seq - (first_seq ?? seq) + 1
}

/** Rows that do not come in the order that was asked for: an index of the store is damaged. */
export function outOfOrder(what: string): LedgerDamagedError {
  return new LedgerDamagedError(
    `An index of the ledger is damaged: ${what} come out of order. What it says cannot be trusted. ` +
      'Run verify on it, and restore a copy.',
  )
}
