import type { Database, Statement } from 'better-sqlite3'

/** A statement that SQLite prepares when it is first used: there are many, and most processes use few of them. */
export class LateStatement<Row = unknown> {
  readonly #prepare: () => Statement<unknown[], Row>
  #prepared: Statement<unknown[], Row> | undefined

  constructor(prepare: () => Statement<unknown[], Row>) {
    this.#prepare = prepare
  }

  run(...values: readonly unknown[]): { readonly changes: number } {
    return this.#statement.run(...values)
  }

  /** The first row. */
  get(...values: readonly unknown[]): Row | undefined {
    return this.#statement.get(...values)
  }

  all(...values: readonly unknown[]): readonly Row[] {
    return this.#statement.all(...values)
  }

  get #statement(): Statement<unknown[], Row> {
    return (this.#prepared ??= this.#prepare())
  }
}

/** Makes statements by their text. */
export interface Preparing {
  /** Rows are objects. */
  readonly rows: <Row>(text: string) => LateStatement<Row>
  /** Of each row the first value. */
  readonly values: <Value>(text: string) => LateStatement<Value>
}

/** Statements of a database by their text. */
export function preparing(database: Database): Preparing {
  return {
    rows: <Row>(text: string) => new LateStatement(() => database.prepare<unknown[], Row>(text)),
    values: <Value>(text: string) =>
      new LateStatement(() => database.prepare<unknown[], Value>(text).pluck()),
  }
}
