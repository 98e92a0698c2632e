import type { Database, Statement } from 'better-sqlite3'
import type { Compilable } from 'kysely'

/** A placeholder in a query for a value that each execution passes. */
class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

/** Names an input of the query, where the query builder takes a value. */
export type Parameter<Input> = <Name extends keyof Input & string>(name: Name) => Input[Name]

/** A query that was compiled by Kysely and prepared by SQLite once, and runs synchronously. */
export interface PreparedQuery<Input, Row> {
  /** Runs a query that writes; answers how many rows it changed and the key of the last one it inserted. */
  run(input: Input): { readonly changes: number; readonly lastInsertRowid: number | bigint }
  /** The first row. */
  get(input: Input): Row | undefined
  all(input: Input): readonly Row[]
  /** Holds the connection until the iteration ends, so it must end before control is given back. */
  iterate(input: Input): IterableIterator<Row>
}

/**
 * Compiles and prepares a query. The result type follows from the query, so the input is given first:
 * `prepareFor<{ runId: string }>(database)((parameter) => tables.selectFrom('run')…)`.
 */
export function prepareFor<Input extends object>(
  database: Database,
): <Row>(build: (parameter: Parameter<Input>) => Compilable<Row>) => PreparedQuery<Input, Row> {
  return <Row>(build: (parameter: Parameter<Input>) => Compilable<Row>) => {
    const { sql, parameters } = build((name) => new Placeholder(name) as Input[typeof name]).compile()
    const statement = database.prepare<unknown[], Row>(sql)
    const bind = (input: Input): unknown[] => {
      const values: unknown[] = []
      for (const value of parameters) {
        values.push(value instanceof Placeholder ? input[value.name as keyof Input] : value)
      }
      return values
    }
    return {
      run: (input) => statement.run(bind(input)),
      get: (input) => statement.get(bind(input)),
      all: (input) => statement.all(bind(input)),
      iterate: (input) => statement.iterate(bind(input)),
    }
  }
}

/**
 * How many rows a statement takes: few appends of a run make more than four, and to prepare a statement for another number
 * takes as long as to insert dozens of rows.
 */
const rowsOfStatements: readonly number[] = [64, 16, 4, 3, 2, 1]

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
      const rows = rowsOfStatement((values.length - start) / this.#width)
      const end = start + rows * this.#width
      this.#statement(rows).run(values.length === end - start ? values : values.slice(start, end))
      start = end
    }
  }

  #statement(rows: number): Statement {
    const known = this.#statements.get(rows)
    if (known) return known
    const text = this.#head + Array.from({ length: rows }, () => this.#row).join(', ')
    const statement = this.#database.prepare(text)
    this.#statements.set(rows, statement)
    return statement
  }
}

function rowsOfStatement(left: number): number {
  return rowsOfStatements.find((rows) => rows <= left) ?? left
}
