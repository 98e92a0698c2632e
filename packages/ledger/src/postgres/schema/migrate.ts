import { LedgerUnavailableError } from '@tallystick/core'
import { CompiledQuery, Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import { connectionConfig } from '../connection/connection-config.ts'
import type { DatabasePlace } from '../connection/database-place.ts'
import { inspectSchema, type Ask, type Found } from './inspect-schema.ts'
import { makeLedger } from '../migrations/0001-ledger.ts'
import { addTail } from '../migrations/0002-tail.ts'
import { addProjections } from '../migrations/0003-derived.ts'
import { addRemovals } from '../migrations/0004-removals.ts'
import { addHistories } from '../migrations/0005-histories.ts'
import { addInboxEnds } from '../migrations/0006-inbox-ends.ts'
import { addPackedRows } from '../migrations/0007-packed-rows.ts'
import { addLeases } from '../migrations/0008-leases.ts'
import { addSharedRows } from '../migrations/0009-shared-rows.ts'
import { renameRunStatus } from '../migrations/0010-run-status.ts'
import { addRunLeases } from '../migrations/0011-run-leases.ts'
import { isContention } from '../connection/postgres-failure.ts'
import type { Pg } from '../connection/pg-package.ts'
import type { PostgresLedgerOptions } from '../connection/postgres-ledger-options.ts'
import type { LedgerTables } from './tables.ts'

/** Every step of the schema, in order. A step that was released is never edited. */
const migrations: readonly ((database: Kysely<unknown>, schema: string) => Promise<void>)[] = [
  makeLedger,
  addTail,
  addProjections,
  addRemovals,
  addHistories,
  addInboxEnds,
  addPackedRows,
  addLeases,
  addSharedRows,
  renameRunStatus,
  addRunLeases,
]

/** How often a migration begins anew that Postgres undid for the sake of others. */
const maxTries = 20

/** The version of the newest schema. */
export const schemaVersion: number = migrations.length

/** Refuses a ledger that this library cannot use as it is. Throws `LedgerUnavailableError`. */
export function requireUsable({ description }: DatabasePlace, found: Found, readOnly: boolean): void {
  if (found.kind === 'ledger' && found.version > schemaVersion) {
    throw new LedgerUnavailableError(
      `The ledger at ${description} has schema version ${found.version}, and this library knows versions up to ` +
        `${schemaVersion}. Writing to it could lose what the newer version keeps. Update @tallystick/ledger.`,
    )
  }
  if (!readOnly) return
  if (found.kind === 'nothing') {
    throw new LedgerUnavailableError(
      `There is no ledger at ${description}, and readOnly creates none. Look at the connection string and the schema.`,
      { reason: 'absent' },
    )
  }
  if (found.version < schemaVersion) {
    throw new LedgerUnavailableError(
      `The ledger at ${description} has the older schema version ${found.version}, and readOnly upgrades ` +
        'nothing. Open it once without readOnly.',
      { reason: 'older_schema' },
    )
  }
}

/**
 * Brings a ledger to the newest schema in one transaction, so that a crash leaves the old or the new one. Processes
 * that do it at once wait for the first of them, over a connection that has all the time it takes.
 */
export async function migrate(options: PostgresLedgerOptions, place: DatabasePlace, pg: Pg): Promise<void> {
  const pool = new pg.Pool({ ...connectionConfig(options, pg), max: 1 })
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const database = new Kysely<LedgerTables>({ dialect: new PostgresDialect({ pool }) })
  try {
    for (let tries = 1; ; tries++) {
      try {
        // What was committed while this process waited has to be seen.
        return await database
          .transaction()
          .setIsolationLevel('read committed')
          .execute((transaction) => migrateWithin(transaction, place))
      } catch (error) {
        // Who reads meanwhile may have been in the way, and the migration is what Postgres undid.
        if (!isContention(error) || tries === maxTries) throw error
      }
    }
  } finally {
    await database.destroy()
  }
}

async function migrateWithin(transaction: Transaction<LedgerTables>, place: DatabasePlace): Promise<void> {
  // A process that is stopped half-way must not keep the others waiting for ever.
  await sql`select set_config('statement_timeout', '0', true),
    set_config('idle_in_transaction_session_timeout', '60000', true),
    set_config('synchronous_commit', case when current_setting('synchronous_commit') = 'off' then 'on'
      else current_setting('synchronous_commit') end, true)`.execute(transaction)
  await sql`select pg_advisory_xact_lock(hashtextextended(${`tallystick ${place.schema}`}, 0))`.execute(
    transaction,
  )
  const found = await inspectSchema(askWithin(transaction), place)
  requireUsable(place, found, false)
  const version = found.kind === 'ledger' ? found.version : 0
  if (version === schemaVersion) return
  if (version === 0) await makeSchema(transaction, place)
  else await lockTables(transaction, place)
  const database = transaction as unknown as Kysely<unknown>
  for (const migration of migrations.slice(version)) await migration(database, place.schema)
  const tables = transaction.withSchema(place.schema)
  await tables.deleteFrom('ledger').execute()
  await tables.insertInto('ledger').values({ application: 'tallystick', version: schemaVersion }).execute()
}

/**
 * Who appends meanwhile waits in front of the first table that an append touches, so with nothing in its hands that the
 * migration waits for: one by one, as each change needs them, they would be locked in another order.
 */
async function lockTables(
  transaction: Transaction<LedgerTables>,
  { quotedSchema }: DatabasePlace,
): Promise<void> {
  const tables = ['run', 'event', 'payload', 'inbox'].map((table) => `${quotedSchema}.${table}`)
  await sql.raw(`lock table ${tables.join(', ')} in access exclusive mode`).execute(transaction)
}

/** Asking for a schema that is there needs a right that using it does not. */
async function makeSchema(transaction: Transaction<LedgerTables>, place: DatabasePlace): Promise<void> {
  const { rows } = await sql`select from pg_catalog.pg_namespace where nspname = ${place.schema}`.execute(
    transaction,
  )
  if (rows.length === 0) await transaction.schema.createSchema(place.schema).execute()
}

function askWithin(transaction: Transaction<LedgerTables>): Ask {
  return async <Row>({ text, values }: Parameters<Ask>[0]) =>
    (await transaction.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows
}
