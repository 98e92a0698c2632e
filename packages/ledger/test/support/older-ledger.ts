import { ownRows } from './own-rows.ts'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import type { RunId } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { genesisHash, rowDigest } from '../../src/record/chain.ts'
import { linkRows } from '../../src/record/linked-row.ts'
import { storedBody } from '../../src/content/event/stored-body.ts'
import { applicationId } from '../../src/sqlite/schema/inspect-file.ts'
import { migrations } from '../../src/sqlite/schema/migrate.ts'

/** What every schema version has to keep, beside the events; the rest follows from them. */
const keptTables = ['run', 'inbox'] as const

/**
 * Writes a ledger file as a release left it that knew only so many of the migrations, with the runs of a closed ledger
 * of today: small ones of one session's first run, since what later versions move elsewhere stays out. Each event has a
 * row of its own, as older releases wrote it.
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
    await writeEvents(database, newest)
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

async function writeEvents(database: Database, newest: string): Promise<void> {
  const insertEvent = database.prepare(
    `insert into event (pos, run_id, seq, epoch, type, v, turn, tool_call_id, at, once_key, body_commit, hash)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const insertPayload = database.prepare('insert into payload (pos, salt, body) values (?, ?, ?)')
  const heads = new Map<RunId, Uint8Array>()
  const ledger = sqliteLedger(newest, { readOnly: true })
  let pos = 0
  for await (const { event } of ledger.tail()) {
    const { runId, seq, epoch, type, v, turn, toolCallId = null, at } = event
    const [row] = linkRows(
      heads.get(runId) ?? genesisHash,
      ownRows([event], (each) => storedBody(each).bytes),
    )
    const { onceKey = null, bodyCommit, hash, salt, body } = row!
    pos++
    insertEvent.run(pos, runId, seq, epoch, type, v, turn, toolCallId, at, onceKey, bodyCommit, hash)
    insertPayload.run(pos, salt, body)
    heads.set(runId, hash)
  }
  await ledger.close()
  for (const [runId, headHash] of heads) sealHead(database, runId, headHash)
}

function sealHead(database: Database, runId: RunId, headHash: Uint8Array): void {
  const row = database
    .prepare<[string], { pos: number; headSeq: number; epoch: number }>(
      'select pos, head_seq as headSeq, epoch from run where run_id = ?',
    )
    .get(runId)!
  // A row moves forward only, so its trigger is put back after the change.
  const trigger = database
    .prepare<[], { sql: string }>(`select sql from sqlite_schema where name = 'run_advances'`)
    .get()!
  database.exec('drop trigger run_advances')
  database
    .prepare('update run set head_hash = ?, seal = ? where run_id = ?')
    .run(headHash, rowDigest({ runId, ...row, headHash }), runId)
  database.exec(trigger.sql)
}
