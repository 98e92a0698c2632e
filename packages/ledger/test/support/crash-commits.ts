import BetterSqlite3, { type Database, type Statement } from 'better-sqlite3'
import { Client } from 'pg'
import type { Cross } from './crash-boundaries.ts'

/**
 * Lets this process be cut off right before and right after every commit that it makes, and within every page of rows, by standing between the ledger
 * and its driver: nothing in the ledger knows of it. Call it before a ledger is opened. Returns what ends it.
 */
export function watchCommits(cross: Cross): () => void {
  const ends = [watchSqlite(cross), watchPostgres(cross)]
  return () => {
    for (const end of ends) end()
  }
}

const isCommit = (source: string): boolean => source.trim().toLowerCase() === 'commit'

/** The statements that write the rows of a page of events: first what is hashed, then what is said. */
const isRows = (source: string): boolean => source.startsWith('insert into event ')

interface SqliteDriver {
  readonly prepare: (this: Database, source: string) => Statement
  readonly exec: (this: Database, source: string) => Database
}

function watchSqlite(cross: Cross): () => void {
  const { prepare, exec } = BetterSqlite3.prototype as unknown as SqliteDriver
  const committing = <T>({ name }: Database, commit: () => T): T => {
    // The lock of the one writer is a file of its own, which holds nothing of a run.
    if (!name.endsWith('.db')) return commit()
    cross(beforeCommit)
    const result = commit()
    cross('commit: done')
    return result
  }
  Object.assign(BetterSqlite3.prototype, {
    prepare(this: Database, source: string): Statement {
      const statement = prepare.call(this, source)
      const run = statement.run.bind(statement)
      if (isCommit(source)) return Object.assign(statement, { run: () => committing(this, run) })
      if (!isRows(source)) return statement
      const insert = (...given: unknown[]): unknown => {
        const result = run(...given)
        cross(withinRows)
        return result
      }
      return Object.assign(statement, { run: insert })
    },
    exec(this: Database, source: string): Database {
      const execute = (): Database => exec.call(this, source)
      return isCommit(source) ? committing(this, execute) : execute()
    },
  })
  return () => void Object.assign(BetterSqlite3.prototype, { prepare, exec })
}

const beforeCommit = 'commit: to be made'
const withinRows = 'page: in the middle'

/** The boundaries within a transaction of SQLite: a process that is stopped there holds the file's write lock. */
export const underLock: readonly string[] = [beforeCommit, withinRows]

interface PostgresDriver {
  readonly query: (this: Client, ...given: unknown[]) => Promise<unknown>
}

/** Statements are whole transactions: one that was sent is carried out, whatever becomes of the process. */
function watchPostgres(cross: Cross): () => void {
  const { query } = Client.prototype as unknown as PostgresDriver
  Object.assign(Client.prototype, {
    query(this: Client, ...given: unknown[]): Promise<unknown> {
      if (!isWriting(given[0])) return query.apply(this, given)
      cross('statement: to be sent')
      const answer = query.apply(this, given)
      cross('statement: sent')
      return answer.then((result) => {
        cross('statement: answered')
        return result
      })
    },
  })
  return () => void Object.assign(Client.prototype, { query })
}

function isWriting(statement: unknown): boolean {
  const text = typeof statement === 'object' && statement !== null && 'text' in statement && statement.text
  return typeof text === 'string' && /\b(insert into|update)\b/.test(text)
}
