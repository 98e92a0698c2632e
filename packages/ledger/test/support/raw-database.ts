import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import BetterSqlite3, { type Database } from 'better-sqlite3'

/** Works on a file with a connection of its own, as any SQLite tool would. */
export function withRaw<T>(path: string, work: (database: Database) => T): T {
  const database = new BetterSqlite3(path)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/**
 * Works on a ledger file as an attacker would who wants to change what it says: with the triggers removed that refuse
 * changes.
 */
export function tamper(path: string, work: (database: Database) => void): void {
  withRaw(path, (database) => {
    // What a test changes need not outlast the machine.
    database.pragma('synchronous = off')
    database.pragma('foreign_keys = off')
    const triggers = database
      .prepare<[], { name: string; sql: string }>(
        `select name, sql from sqlite_schema where type = 'trigger' and name not like 'run_summary%'`,
      )
      .all()
    for (const { name } of triggers) database.exec(`drop trigger ${name}`)
    work(database)
    for (const { sql } of triggers) database.exec(sql)
  })
}

/** The files of a path's folder, or those named, with digests of their bytes. For databases that no process has open. */
export function filesBeside(
  path: string,
  names: readonly string[] = readdirSync(dirname(path)),
): Readonly<Record<string, string>> {
  const folder = dirname(path)
  const digest = (name: string): string =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex')
  return Object.fromEntries(names.map((name) => [name, digest(name)]))
}
