import type { Database } from 'better-sqlite3'
import type { Kysely } from 'kysely'
import { Migrator, type Migration } from 'kysely/migration'
import { applicationId } from './inspect-file.ts'
import { ledgerMigration } from '../migrations/0001-ledger.ts'
import { projectionMigration } from '../migrations/0003-derived.ts'
import { removalMigration } from '../migrations/0004-removals.ts'
import { historyMigration } from '../migrations/0005-histories.ts'
import { inboxEndsMigration } from '../migrations/0006-inbox-ends.ts'
import { packedRowsMigration } from '../migrations/0007-packed-rows.ts'
import { fewerIndexesMigration } from '../migrations/0008-fewer-indexes.ts'
import { leaseMigration } from '../migrations/0009-leases.ts'
import { sharedRowsMigration } from '../migrations/0010-shared-rows.ts'
import { runStatusMigration } from '../migrations/0011-run-status.ts'
import { runLeaseMigration } from '../migrations/0012-run-leases.ts'
import type { LedgerTables } from './tables.ts'

/** Every step of the schema, in order. A step that was released is never edited. */
export const migrations: Readonly<Record<string, Migration>> = {
  '0001-ledger': ledgerMigration,
  '0003-derived': projectionMigration,
  '0004-removals': removalMigration,
  '0005-histories': historyMigration,
  '0006-inbox-ends': inboxEndsMigration,
  '0007-packed-rows': packedRowsMigration,
  '0008-fewer-indexes': fewerIndexesMigration,
  '0009-leases': leaseMigration,
  '0010-shared-rows': sharedRowsMigration,
  '0011-run-status': runStatusMigration,
  '0012-run-leases': runLeaseMigration,
}

/** The `user_version` of the newest schema. */
export const schemaVersion: number = Object.keys(migrations).length

/** The `user_version` of a database. */
function versionOf(database: Database): number {
  return database.pragma('user_version', { simple: true }) as number
}

/**
 * Migrations of this process, one after the other. Kysely's are asynchronous while SQLite's lock is held, so a second
 * one on the same file would block the very thread that the first needs to finish.
 */
let lastMigration: Promise<unknown> = Promise.resolve()

/** Brings a database to the newest schema in one transaction, so that a crash leaves the old or the new one. */
export function migrate(database: Database, tables: Kysely<LedgerTables>): Promise<void> {
  const migration = lastMigration.then(() => migrateNow(database, tables))
  lastMigration = migration.catch(() => undefined)
  return migration
}

async function migrateNow(database: Database, tables: Kysely<LedgerTables>): Promise<void> {
  database.exec('begin immediate')
  try {
    if (versionOf(database) < schemaVersion) {
      const migrator = new Migrator({
        db: tables,
        provider: { getMigrations: async () => ({ ...migrations }) },
        migrationTableName: 'schema_migration',
        migrationLockTableName: 'schema_migration_lock',
      })
      const { error } = await migrator.migrateToLatest()
      if (error !== undefined)
        throw error instanceof Error ? error : new Error('a migration failed', { cause: error })
      database.pragma(`application_id = ${applicationId}`)
      database.pragma(`user_version = ${schemaVersion}`)
    }
    database.exec('commit')
  } catch (error) {
    if (database.inTransaction) database.exec('rollback')
    throw error
  }
}
