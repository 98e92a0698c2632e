import BetterSqlite3, { type Database } from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { applicationId } from '../../src/sqlite/schema/inspect-file.ts'
import { migrations } from '../../src/sqlite/schema/migrate.ts'

/** What every schema version has to keep; the rest follows from it, or belongs to what later versions can do. */
const keptTables = ['run', 'event', 'payload', 'inbox'] as const

/**
 * Writes a ledger file as a release left it that knew only so many of the migrations, with the runs of a closed ledger
 * of today: small ones of one session's first run, since what later versions move elsewhere stays out.
 */
export async function writeOlderLedger(path: string, version: number, newest: string): Promise<void> {
  const database = new BetterSqlite3(path)
  try {
    database.pragma('journal_mode = wal')
    const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database }) })
    const known = Object.fromEntries(Object.entries(migrations).slice(0, version))
    const { error } = await new Migrator({
      db: tables,
      provider: { getMigrations: async () => known },
      migrationTableName: 'schema_migration',
      migrationLockTableName: 'schema_migration_lock',
    }).migrateToLatest()
    if (error !== undefined) throw new Error(`no schema of version ${version}`, { cause: error })
    database.pragma(`application_id = ${applicationId}`)
    database.pragma(`user_version = ${version}`)
    database.prepare('attach ? as newest').run(newest)
    for (const table of keptTables) copyRows(database, table)
    database.exec('detach newest')
  } finally {
    database.close()
  }
}

function copyRows(database: Database, table: string): void {
  const columns = database
    .prepare<[string], { name: string }>('select name from pragma_table_info(?)')
    .all(table)
  const names = columns.map(({ name }) => `"${name}"`).join(', ')
  database.exec(`insert into ${table} (${names}) select ${names} from newest.${table} order by pos`)
}
