import type { Database, Statement } from 'better-sqlite3'

/** Values of a statement by their numbers, since SQLite takes `$1` for a name. */
type Numbered = Readonly<Record<string, unknown>>

/** Statements over the tables that follow from the events, prepared once each. */
export class ProjectionStatements {
  readonly #database: Database
  readonly #prepared = new Map<string, Statement<[Numbered]>>()

  constructor(database: Database) {
    this.#database = database
  }

  all(text: string, values: readonly unknown[]): readonly unknown[] {
    return this.#statement(text).all(numbered(values))
  }

  /** Answers how many rows were changed. */
  run(text: string, values: readonly unknown[]): number {
    return this.#statement(text).run(numbered(values)).changes
  }

  /** Does what may fail as soon as another process writes: what follows from events is worth no wait. */
  withoutWaiting<T>(work: () => T): T {
    const database = this.#database
    const waited = database.pragma('busy_timeout', { simple: true }) as number
    database.pragma('busy_timeout = 0')
    try {
      return work()
    } finally {
      database.pragma(`busy_timeout = ${waited}`)
    }
  }

  #statement(text: string): Statement<[Numbered]> {
    const known = this.#prepared.get(text)
    if (known) return known
    const statement = this.#database.prepare<[Numbered]>(text)
    this.#prepared.set(text, statement)
    return statement
  }
}

function numbered(values: readonly unknown[]): Numbered {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}
