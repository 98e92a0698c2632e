import { LedgerUnavailableError } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import type {
  ChangedRuns,
  ChangePart,
  ProjectionDatabase,
  ProjectionDialect,
} from '../projection/database.ts'
import { sqliteCode } from './open-database.ts'
import { rareType } from '../store/store.ts'
import type { SqliteStore } from './sqlite-store.ts'
import { numberedValues, Statements } from './records.ts'

/** The SQL of SQLite. */
export const sqliteDialect: ProjectionDialect = {
  table: (name) => name,
  // By its name, since without figures about a file SQLite would take the wrong index.
  rareEvents: `(select * from event indexed by event_type where ${rareType}) as event`,
  texts: (parameter) => `json_each(${parameter}) as item`,
  objects: (parameter) => `json_each(${parameter}) as item`,
  hasText: (array, parameter) => `exists (select 1 from json_each(${array}) where value = ${parameter})`,
  // No other connection writes at the same time.
  held: '',
  unindexed: (column) => `+${column}`,
}

/** How many events are looked at for the runs that they are of. */
const eventsPerRead = 4096

/** How often, and after which pauses, a change is tried again that another process was in the way of. */
const maxTries = 40
const pauseMs = 25

/** The tables of a ledger file that follow from its events. */
export function sqliteProjections(store: SqliteStore, database: Database): ProjectionDatabase {
  const statements = new Statements(database)
  const ask = <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    store.read(() => statements.numbered(text).all(numberedValues(values)) as readonly Row[])
  const change = (parts: readonly ChangePart[], values: readonly unknown[]): boolean =>
    withoutWaiting(database, () =>
      store.transactions.transact('lazy', () =>
        parts.every(
          (part, index) =>
            statements.numbered(part.text('true')).run(numberedValues(values)).changes > 0 || index > 0,
        ),
      ),
    )
  return {
    dialect: sqliteDialect,
    isWritable: store.isWritable,
    ask,
    async change(parts, values) {
      for (let tries = 1; ; tries++) {
        try {
          return await store.write(() => change(parts, values))
        } catch (error) {
          if (tries === maxTries || !isBusy(error)) throw error
          await new Promise((resolve) => void setTimeout(resolve, pauseMs))
        }
      }
    },
    async changedRuns(after): Promise<ChangedRuns> {
      const rows = await ask<{ readonly pos: number; readonly run_id: string }>(
        `select pos, run_id from event where pos > $1 order by pos limit ${eventsPerRead}`,
        [placeOf(after)],
      )
      const last = rows.at(-1)
      return {
        runIds: [...new Set(rows.map(({ run_id }) => run_id))],
        cursor: last ? `${last.pos}` : after,
        isLast: rows.length < eventsPerRead,
      }
    },
    async isAfter(place, runId, seq) {
      const text = 'select 1 from event where run_id = $1 and seq = $2 and pos > $3'
      return (await ask(text, [runId, seq, placeOf(place)])).length > 0
    },
    async eventsAfter(after) {
      const [last] = await ask<{ readonly pos: number | null }>('select max(pos) as pos from event')
      return Math.max(0, (last?.pos ?? 0) - placeOf(after))
    },
  }
}

function placeOf(cursor: string): number {
  return cursor === '' ? 0 : Number(cursor)
}

/** Does what may fail as soon as another process writes: what follows from events is worth no wait. */
function withoutWaiting<T>(database: Database, work: () => T): T {
  const waited = database.pragma('busy_timeout', { simple: true }) as number
  database.pragma('busy_timeout = 0')
  try {
    return work()
  } finally {
    database.pragma(`busy_timeout = ${waited}`)
  }
}

function isBusy(error: unknown): boolean {
  return (
    error instanceof LedgerUnavailableError && (sqliteCode(error.cause)?.startsWith('SQLITE_BUSY') ?? false)
  )
}
