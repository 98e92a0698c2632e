import type { GeneratedAlways } from 'kysely'

/** One row a run: where its ledger ends and who may append. Appending is a compare-and-swap of this row. */
export interface RunTable {
  readonly run_id: string
  /** `pos` of the run's first event: runs in the order in which they were made. */
  readonly pos: number
  readonly head_seq: number
  readonly head_hash: Uint8Array
  readonly epoch: number
  /** See `rowDigest`. */
  readonly seal: Uint8Array
  /** The conversation that the run belongs to, as its first event says. */
  readonly session_id: string | null
  /** From 1 within the session, each taken once; null as `session_id` is. */
  readonly session_place: number | null
}

/**
 * One row an event, or one for several neighbouring events; never changed and never removed. What it says is in
 * `payload`. In front of these columns each store has `pos`, which rises within a run.
 */
export interface EventColumns {
  readonly run_id: string
  /** Of the first event, where the row holds several; null where it holds one. */
  readonly first_seq: number | null
  /** Of the event; of several, of the last one, as `at` is. */
  readonly seq: number
  readonly epoch: number
  /** Of the event; `several` for a segmented row, which names neither calls nor facts. */
  readonly type: string
  readonly v: number
  readonly turn: number
  readonly tool_call_id: string | null
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  /** Unique within the run: the facts that may be recorded once. */
  readonly once_key: string | null
  /** Empty for a segmented row: its link covers a commitment to each segment. */
  readonly body_commit: Uint8Array
  readonly hash: Uint8Array
}

/** What the events of a row say, as bytes. May be removed, as a whole or by segments, never changed; the chain holds without it. */
export interface PayloadTable {
  /** Of its event. */
  readonly pos: number
  /** Zeros once segments were removed. */
  readonly salt: Uint8Array
  readonly body: Uint8Array
}

/** Commands from outside, in the order of `pos`. Rows stay when they are taken, so that a key is known for ever. */
export interface InboxTable {
  readonly pos: GeneratedAlways<number>
  readonly run_id: string
  readonly key: string
  readonly kind: string
  readonly body: Uint8Array
  readonly at: number
  /** The head of the append that took it. */
  readonly taken_seq: number | null
}

/** Facts about calls of a run that may be recorded once, each as its number: see `factNumberOf`. */
export interface FactTable {
  /** `pos` of the run. */
  readonly run: number
  readonly number: number
}
