import type { Json } from '@tallystick/core/vocabulary'

/** A value that a statement's parameter can have. */
export type ParameterValue = string | number | boolean | null

/** How much one statement may take and show. */
export interface StatementBounds {
  readonly maxRows: number
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly lockTimeoutMs: number
}

/** Why not all rows are shown: there are more than `maxRows`, or the next would exceed `maxBytes`. */
export type Cut = 'rows' | 'bytes'

/** What is shown of a statement's rows. */
export interface RowsEnding {
  readonly kind: 'rows'
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Json[])[]
  readonly cut?: Cut
}

/** How a statement ended. */
export type StatementEnding =
  | RowsEnding
  /** For the model. `schema` lists the tables, where knowing them helps. */
  | { readonly kind: 'failed'; readonly message: string; readonly schema?: string }
  | { readonly kind: 'out_of_memory' }
  /** It never ran: what it needs was not ready in time. `why` is a clause for the model. */
  | { readonly kind: 'not_started'; readonly why: string }

/** How a statement ended, as the process that asked knows it. */
export type StatementReply =
  | StatementEnding
  /** It ran, and had not finished in its time. */
  | { readonly kind: 'timed_out' }
