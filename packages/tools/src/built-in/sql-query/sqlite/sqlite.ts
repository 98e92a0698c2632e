import { createRequire } from 'node:module'
import type { Binding, Cell } from './cells.ts'

/** What is needed of better-sqlite3, which brings no types. */
export interface Database {
  pragma(source: string): unknown
  exec(sql: string): unknown
  prepare(sql: string): Statement
  close(): void
}

/** A compiled statement. */
export interface Statement {
  /** Whether it returns rows. */
  readonly reader: boolean
  /** Whether it changes nothing in the database. */
  readonly readonly: boolean
  raw(on: boolean): Statement
  safeIntegers(on: boolean): Statement
  columns(): readonly { readonly name: string }[]
  iterate(
    ...bindings: readonly (Binding | Readonly<Record<string, Binding>>)[]
  ): IterableIterator<readonly Cell[]>
}

type DatabaseConstructor = new (
  path: string,
  options: { readonly readonly: boolean; readonly fileMustExist: boolean; readonly timeout: number },
) => Database

/** Opens a SQLite file so that no statement can change it or anything else. */
export function openReadOnly(path: string, busyMs: number): Database {
  const require = createRequire(import.meta.url)
  const Constructor = require('better-sqlite3') as DatabaseConstructor
  const database = new Constructor(path, { readonly: true, fileMustExist: true, timeout: busyMs })
  database.pragma('query_only = ON')
  // What the file itself brings along (views, generated columns) may not call what could do harm.
  database.pragma('trusted_schema = OFF')
  // Sorting and recursion stay in memory, which is watched, and do not fill the disk.
  database.pragma('temp_store = MEMORY')
  return database
}
