import type { Json } from '@tallystick/core/vocabulary'
import type { Cut, RowsEnding, StatementBounds } from './statement.ts'

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
