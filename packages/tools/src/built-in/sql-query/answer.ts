import type { Json } from '@tallystick/core/vocabulary'
import { ToolError } from '../../define/outcome.ts'

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
type Cut = 'rows' | 'bytes'

interface RowsEnding {
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

/** Throws `ToolError` if a statement's ending has no rows to show. */
export function toAnswer(reply: StatementReply, bounds: StatementBounds): Json {
  if (reply.kind === 'rows') {
    const { columns, rows, cut } = reply
    if (cut === undefined) return { columns, rows }
    const start =
      rows.length === 0
        ? 'No row is shown: the first alone'
        : `Only the first ${rows.length} rows are shown: more`
    const note =
      cut === 'rows'
        ? `Only the first ${bounds.maxRows} rows are shown, there are more. Aggregate, filter, or page with ORDER BY, LIMIT and OFFSET.`
        : `${start} would be over ${bounds.maxBytes} bytes. Select fewer columns or rows, or parts of long values with substr().`
    return { columns, rows, note }
  }
  if (reply.kind === 'failed')
    throw new ToolError(
      reply.schema === undefined
        ? reply.message
        : `${reply.message}\nThe tables and views are:\n${reply.schema}`,
    )
  if (reply.kind === 'not_started') {
    throw new ToolError(
      `The statement did not run: ${reply.why}. The statement is not the cause: make the same call again, or continue without it.`,
      { retryable: true },
    )
  }
  if (reply.kind === 'timed_out') {
    throw new ToolError(
      `The statement was stopped: it had not finished after ${bounds.timeoutMs} ms. ` +
        'Make it cheaper: filter earlier, join on indexed columns, end every recursion.',
      { outcome: 'timed_out' },
    )
  }
  throw new ToolError(
    'The statement was stopped: it needed too much memory. Select fewer or smaller values, or aggregate them.',
  )
}

/** The first rows of a statement that fit its bounds. */
export class ShownRows {
  readonly #columns: readonly string[]
  readonly #bounds: StatementBounds
  readonly #rows: (readonly Json[])[] = []
  #bytes: number
  #cut: Cut | undefined

  constructor(columns: readonly string[], bounds: StatementBounds) {
    this.#columns = columns
    this.#bounds = bounds
    this.#bytes = Buffer.byteLength(JSON.stringify(columns))
  }

  /**
   * Takes the next row; returns whether another one may fit. A row of at least `bytesAtLeast` that cannot fit is not made
   * into JSON.
   */
  add(bytesAtLeast: number, values: () => readonly Json[]): boolean {
    if (this.#cut !== undefined) return false
    if (this.#rows.length === this.#bounds.maxRows) return this.cut('rows')
    const left = this.#bounds.maxBytes - this.#bytes
    if (bytesAtLeast > left) return this.cut('bytes')
    const row = values()
    const bytes = Buffer.byteLength(JSON.stringify(row)) + 1
    if (bytes > left) return this.cut('bytes')
    this.#bytes += bytes
    this.#rows.push(row)
    return true
  }

  /** Takes no more rows, though there are more. */
  cut(why: Cut): false {
    this.#cut ??= why
    return false
  }

  ending(): RowsEnding {
    return {
      kind: 'rows',
      columns: this.#columns,
      rows: this.#rows,
      ...(this.#cut !== undefined && { cut: this.#cut }),
    }
  }
}

export interface StatementRequest extends StatementBounds {
  readonly path: string
  readonly sql: string
  readonly parameters: readonly ParameterValue[] | Readonly<Record<string, ParameterValue>>
}

/** A process reports that the statement runs now, unless it is refused, then how it ended. */
export type StatementMessage =
  | { readonly kind: 'running' }
  | {
      readonly kind: 'ended'
      readonly ending: StatementEnding
      /** The process must not run another statement. */
      readonly isSpent: boolean
    }
