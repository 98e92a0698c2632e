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

  /** Holds the connection until the iteration ends, so it must end before control is given back. */
  iterate(...values: readonly unknown[]): IterableIterator<Row> {
    return this.#statement.iterate(...values)
  }

  get #statement(): Statement<unknown[], Row> {
    return (this.#prepared ??= this.#prepare())
  }
}

/** Statements of a database by their text. */
export class Statements {
  readonly #database: Database
  readonly #byText = new Map<string, Statement<[Readonly<Record<string, unknown>>]>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Rows are objects. */
  rows<Row>(text: string): LateStatement<Row> {
    return new LateStatement(() => this.#database.prepare<unknown[], Row>(text))
  }

  /** Of each row the first value. */
  values<Value>(text: string): LateStatement<Value> {
    return new LateStatement(() => this.#database.prepare<unknown[], Value>(text).pluck())
  }

  /** A statement whose parameters are `$1`, `$2` …, prepared once for its text. */
  numbered(text: string): Statement<[Readonly<Record<string, unknown>>]> {
    const known = this.#byText.get(text)
    if (known) return known
    const statement = this.#database.prepare<[Readonly<Record<string, unknown>>]>(text)
    this.#byText.set(text, statement)
    return statement
  }
}

/** The values of parameters `$1`, `$2` …, which SQLite takes for names. */
export function numberedValues(values: readonly unknown[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}

/**
 * How many rows a statement takes: to prepare a statement for another number takes as long as to insert dozens of rows.
 */
const rowsOfStatements: readonly number[] = [64, 16, 8, 4, 3, 2, 1]

/** Inserts any number of rows into a table with few statements, in their order. */
export class RowsInsert {
  readonly #database: Database
  readonly #statements = new Map<number, Statement>()
  readonly #head: string
  readonly #row: string
  readonly #width: number

  constructor(database: Database, table: string, columns: readonly string[]) {
    this.#database = database
    this.#head = `insert into ${table} (${columns.join(', ')}) values `
    this.#row = `(${columns.map(() => '?').join(', ')})`
    this.#width = columns.length
  }

  /** `values` are those of the first row in the order of the columns, then those of the second, and so on. */
  run(values: readonly unknown[]): void {
    for (let start = 0; start < values.length;) {
      const left = (values.length - start) / this.#width
      const rows = rowsOfStatements.find((count) => count <= left) ?? left
      const end = start + rows * this.#width
      this.#statement(rows).run(values.length === end - start ? values : values.slice(start, end))
      start = end
    }
  }

  #statement(rows: number): Statement {
    const known = this.#statements.get(rows)
    if (known) return known
    const statement = this.#database.prepare(this.#head + Array(rows).fill(this.#row).join(', '))
    this.#statements.set(rows, statement)
    return statement
  }
}
