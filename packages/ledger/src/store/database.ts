import type { EventType } from '@tallystick/core/vocabulary'
import { eventColumns, type EventRow } from '../format/event-row.ts'

/**
 * The parts of SQL that differ between databases. In every statement `@.` stands before the names of tables, and `$1`, `$2` …
 * for values.
 */
export interface Dialect {
  /** The strings of a JSON array, as a table `item` with the column `value`. */
  readonly texts: (parameter: string) => string
  /** The objects of a JSON array, as a table `item` with the column `value`, of which `->>` takes fields. */
  readonly objects: (parameter: string) => string
  /** Follows the name of a table that is to be read by an index. Without figures about a file SQLite would take another. */
  readonly using: (index: string) => string
  /** Ends a query whose rows must not change until its transaction ends. */
  readonly forShare: string
  readonly forUpdate: string
  /** The time of the machine that holds the database, in milliseconds since 1970 UTC. */
  readonly now: string
}

/** One statement of a change. All of a change share their values, from `$1` on. */
export interface ChangePart {
  readonly name: string
  /** The statement; `when` stands for the condition under which the change is made at all. */
  readonly text: (when: string) => string
}

/** Runs that may have changed after a place. */
export interface ChangedRuns {
  readonly runIds: readonly string[]
  /** Where to continue; the given place if nothing has settled after it. */
  readonly cursor: string
  /** Nothing more comes after it now. */
  readonly isLast: boolean
  /** The events after the place are unknown, because the ledger no longer has an event at the place. */
  readonly isLost?: true
}

/** The database of a store, for statements that both databases understand. Members reject with a `TallystickError`. */
export interface StoreDatabase {
  readonly dialect: Dialect
  readonly isWritable: boolean
  /** A search looks at this many events in one statement, so that a search for what is rare gives others their turn. */
  readonly maxScanned: number
  /** Throws if the ledger was closed. */
  readonly requireOpen: () => void
  readonly ask: <Row>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>
  /** The same for a statement that may go through all there is. */
  readonly askPatiently: <Row>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>
  /** Returns the first rows of a query over events, as many as a batch holds; `order` names columns of `event`. */
  readonly askBatch: <Row extends EventRow>(
    query: string,
    order: readonly string[],
    values: readonly unknown[],
  ) => Promise<readonly Row[]>
  /**
   * Changes derived tables, all of it or nothing, in a transaction that keeps no writer waiting. The first part decides: if it
   * changes no row, nothing is done, and the answer is `false`.
   */
  readonly change: (parts: readonly ChangePart[], values: readonly unknown[]) => Promise<boolean>
  /** Returns runs with events after a place; from the first event on, if it is `''`. */
  readonly changedRuns: (after: string) => Promise<ChangedRuns>
  readonly isAfter: (place: string, runId: string, seq: number) => Promise<boolean>
  /** Returns about how many events come after a place. */
  readonly eventsAfter: (after: string) => Promise<number>
}

/** A batch holds at most this many rows, and ends with the first that takes its bodies over this many bytes. */
export const rowsPerBatch = 512
export const bytesPerBatch: number = 1024 * 1024

/** A full batch may have ended before the query did. */
export function isFull(rows: readonly EventRow[]): boolean {
  // A character is three bytes of UTF-8 at most.
  const characters = rows.reduce((sum, { body }) => sum + body.length, 0)
  return rows.length >= rowsPerBatch || 3 * characters >= bytesPerBatch
}

/** The columns of a run's row beside its lease. */
export const runColumns =
  'pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, seal'

/** The columns of events, each with the name of its table. */
export const eventColumnsText: string = eventColumns.map((column) => `event.${column}`).join(', ')

/** Selects events, each with the link that it is chained to, from a table or join that calls them `event`. */
export function selectLinked(from: string, more = ''): string {
  return `select ${eventColumnsText}${more},
      previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
    from ${from} left join @.event as previous on previous.run_id = event.run_id and previous.seq = event.seq - 1`
}

/** Numbers the values of a statement while its text is built. */
export class Values {
  readonly list: unknown[] = []

  /** Adds a value, and returns the parameter that stands for it. */
  add(value: unknown): string {
    return `$${this.list.push(value)}`
  }
}

/**
 * Types that come in every turn: their events are found with their run, and all others by an index of their own. The index of a
 * ledger is what its format says, so a new type is `false`.
 */
const comesEveryTurn: Readonly<Record<EventType, boolean>> = {
  run_started: false,
  history_carried: false,
  history_edited: false,
  run_resumed: false,
  run_finished: false,
  input_received: false,
  input_settled: false,
  model_call_started: true,
  assistant_started: true,
  assistant_text_delta: true,
  assistant_reasoning_delta: true,
  tool_input_delta: true,
  tool_request_ready: true,
  usage_updated: true,
  assistant_message_finished: true,
  model_stream_failed: false,
  tool_requests_collected: true,
  approval_requested: false,
  approval_decided: false,
  tool_started: true,
  tool_progress: true,
  tool_deferred: false,
  tool_attempt_failed: false,
  tool_result: true,
  tool_results_injected: true,
  compaction_started: false,
  context_compacted: false,
  agent_handed_off: false,
  guardrail_tripped: false,
  guardrails_checked: false,
  output_checked: false,
  limit_reached: false,
  limit_raised: false,
  cancel_requested: false,
}

/** The index by type has the events of rare types. */
export function isRareType(type: EventType): boolean {
  return !comesEveryTurn[type]
}

/** The condition of the index by type. A query that is to use the index has to state the same. */
export const rareType: string = `type not in (${(Object.keys(comesEveryTurn) as EventType[])
  .filter((type) => comesEveryTurn[type])
  .map((type) => `'${type}'`)
  .join(', ')})`
