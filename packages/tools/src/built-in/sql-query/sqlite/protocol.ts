import type { Json } from '@tallystick/core/vocabulary'

/** A value that a statement's parameter can have. */
export type ParameterValue = string | number | boolean | null

/** What the process of a statement is asked to do. */
export interface StatementRequest {
  readonly path: string
  readonly sql: string
  readonly parameters: readonly ParameterValue[] | Readonly<Record<string, ParameterValue>>
  readonly maxRows: number
  readonly maxBytes: number
  readonly timeoutMs: number
}

/** Why not all rows are shown: there are more than `maxRows`, or the next would exceed `maxBytes`. */
export type Cut = 'rows' | 'bytes'

/** How a statement ended, as its process says it. */
export type StatementEnding =
  | {
      readonly kind: 'rows'
      readonly columns: readonly string[]
      readonly rows: readonly (readonly Json[])[]
      readonly cut?: Cut
    }
  /** For the model. `schema` lists the tables, where knowing them helps. */
  | { readonly kind: 'failed'; readonly message: string; readonly schema?: string }
  | { readonly kind: 'out_of_memory' }

/** What the process of a statement says: that the statement runs now, then how it ended. */
export type StatementMessage =
  | { readonly kind: 'running' }
  | {
      readonly kind: 'ended'
      readonly ending: StatementEnding
      /** Whether the process should run no other statement. */
      readonly isSpent: boolean
    }

/** How a statement ended, as the process that asked knows it. */
export type StatementReply = StatementEnding | { readonly kind: 'timed_out' }
