import type { Database } from 'better-sqlite3'
import type { Compilable } from 'kysely'

/** Stands in a query for a value that each run of it brings along. */
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
    const bind = (input: Input): unknown[] =>
      parameters.map((value) => (value instanceof Placeholder ? input[value.name as keyof Input] : value))
    return {
      run: (input) => statement.run(...bind(input)),
      get: (input) => statement.get(...bind(input)),
      all: (input) => statement.all(...bind(input)),
      iterate: (input) => statement.iterate(...bind(input)),
    }
  }
}
