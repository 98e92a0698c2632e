import { LedgerUnavailableError } from '@tallystick/core'
import type { ChangedRuns, ChangePart, ProjectionDatabase } from '../projection/tables/projection-database.ts'
import { wait } from './connection/wait.ts'
import { sqliteDialect } from './rows/sqlite-dialect.ts'
import { sqliteCode } from './schema/sqlite-failure.ts'
import type { StoreAccess } from './store-access.ts'

/** How many events are looked at for the runs that they are of. */
const eventsPerRead = 4096

/** How often, and after which pauses, a change is tried again that another process was in the way of. */
const maxTries = 40
const pauseMs = 25

/** The tables of a ledger file that follow from its events. */
export function sqliteProjections(access: StoreAccess, isWritable: boolean): ProjectionDatabase {
  const ask = <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    access.read(({ projections }) => projections.all(text, values) as readonly Row[])
  return {
    dialect: sqliteDialect,
    isWritable,
    ask,
    change: (parts, values) => changeSoon(access, parts, values),
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
      const rows = await ask(
        'select 1 from event where run_id = $1 and seq >= $2 and coalesce(first_seq, seq) <= $2 and pos > $3',
        [runId, seq, placeOf(place)],
      )
      return rows.length > 0
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

/** Tries until no other process is in the way, without keeping this one from anything meanwhile. */
async function changeSoon(
  access: StoreAccess,
  parts: readonly ChangePart[],
  values: readonly unknown[],
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      return await access.write(({ projections, transactions }) =>
        projections.withoutWaiting(() =>
          transactions.transact('lazy', () =>
            parts.every((part, index) => projections.run(part.text('true'), values) > 0 || index > 0),
          ),
        ),
      )
    } catch (error) {
      if (tries === maxTries || !isBusy(error)) throw error
      await wait(pauseMs)
    }
  }
}

function isBusy(error: unknown): boolean {
  return (
    error instanceof LedgerUnavailableError && (sqliteCode(error.cause)?.startsWith('SQLITE_BUSY') ?? false)
  )
}
