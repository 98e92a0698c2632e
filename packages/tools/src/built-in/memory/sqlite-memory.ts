import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { ConfigurationError } from '@tallystick/core'
import {
  option,
  requireOptions,
  explainNativeFailure,
  requireNativeInterface,
} from '@tallystick/core/internal'
import { requirePackage } from '../../packages.ts'
import {
  readErasedOwner,
  listIndexWords,
  mayContinue,
  type Memory,
  type MemoryOwner,
  type MemoryStore,
  type SearchPhrases,
} from './memory-store.ts'

/** The part of better-sqlite3 that is used; it ships no types. */
interface Database {
  pragma(source: string): unknown
  exec(sql: string): unknown
  prepare(sql: string): Statement
  transaction<Result>(body: () => Result): { immediate(): Result }
  close(): void
}

interface Statement {
  run(...values: readonly unknown[]): { readonly changes: number }
  get(...values: readonly unknown[]): unknown
  all(...values: readonly unknown[]): readonly unknown[]
}

const { filledText } = option

/** How long a writer waits for another process that writes. */
const busyMs = 5_000

/**
 * Memories in a SQLite file of their own, created if missing and readable for its owner alone, with full-text search. Needs
 * the package better-sqlite3. What is removed or erased is overwritten in the file.
 */
export function sqliteMemory(path: string): MemoryStore {
  requireOptions('sqliteMemory', filledText, path, 'the path of its file')
  requireNativeInterface('sqliteMemory', process)
  requirePackage('sqliteMemory()', 'better-sqlite3')
  const database = openFile(path)
  const run = (sql: string, ...values: readonly unknown[]): unknown => database.prepare(sql).run(...values)
  const get = (sql: string, ...values: readonly unknown[]): unknown => database.prepare(sql).get(...values)
  const list = (sql: string, ...values: readonly unknown[]): readonly Memory[] =>
    database.prepare(sql).all(...values) as readonly Memory[]
  const write = <Result>(body: () => Result): Result => database.transaction(body).immediate()

  const selected = 'select id, text, at from memory where owner = ?'
  const savedUnder = ({ owner }: MemoryOwner, key: string): Memory | undefined =>
    get(`${selected} and key = ?`, owner, key) as Memory | undefined
  const wasRemovedUnder = ({ owner }: MemoryOwner, key: string): boolean =>
    get('select 1 from memory where owner = ? and removed_under = ?', owner, key) !== undefined

  return {
    save: async (owner, { key, text, at, max }) =>
      write(() => {
        const known = savedUnder(owner, key)
        if (known) return known
        const { kept, last } = get(
          'select count(*) filter (where removed_under is null) as kept, coalesce(max(id), 0) as last from memory where owner = ?',
          owner.owner,
        ) as { kept: number; last: number }
        if (kept >= max) return 'full'
        const id = last + 1
        run(
          'insert into memory (owner, id, key, subject, text, at) values (?, ?, ?, ?, ?, ?)',
          ...[owner.owner, id, key, owner.subject, text, at],
        )
        run(
          'insert into memory_words (rowid, owner, words) select place, ?, ? from memory where owner = ? and id = ?',
          ...[toOwnerWord(owner.owner), listIndexWords(text).join(' '), owner.owner, id],
        )
        run(
          'delete from memory where owner = ? and removed_under is not null and id < ?',
          ...[owner.owner, id - 2 * max],
        )
        return { id, text, at }
      }),
    savedUnder: async (owner, key) => savedUnder(owner, key),
    remove: async (owner, id, key) =>
      write(() => {
        if (wasRemovedUnder(owner, key)) return true
        const row = get(
          'select place from memory where owner = ? and id = ? and removed_under is null',
          ...[owner.owner, id],
        ) as { place: number } | undefined
        if (row === undefined) return false
        run('delete from memory_words where rowid = ?', row.place)
        run(`update memory set text = '', removed_under = ? where place = ?`, key, row.place)
        return true
      }),
    wasRemovedUnder: async (owner, key) => wasRemovedUnder(owner, key),
    search: async ({ owner }, phrases, limit) =>
      phrases.length === 0
        ? []
        : list(
            `select id, text, at from memory_words join memory on place = memory_words.rowid
             where memory_words match ? and memory.owner = ? order by bm25(memory_words, 0.0, 1.0), id desc limit ?`,
            ...[matchWords(owner, phrases), owner, limit],
          ),
    list: async ({ owner }, limit, before = Number.MAX_SAFE_INTEGER) =>
      list(`${selected} and removed_under is null and id < ? order by id desc limit ?`, owner, before, limit),
    erase: async (erased) => {
      const { owner, subject } = readErasedOwner(erased)
      const those = 'from memory where owner = ? or subject = ?'
      return write(() => {
        run(`delete from memory_words where rowid in (select place ${those})`, owner, subject)
        const { kept } = get(
          `select count(*) filter (where removed_under is null) as kept ${those}`,
          ...[owner, subject],
        ) as { kept: number }
        run(`delete ${those}`, owner, subject)
        return kept
      })
    },
    close: async () => database.close(),
  }
}

/** Both sides hold letters and digits only: no word of a query is part of its language. */
function matchWords(owner: string, phrases: SearchPhrases): string {
  const any = phrases.map((words) => `"${words.join(' ')}"${mayContinue(words.at(-1) ?? '') ? ' *' : ''}`)
  return `owner : "${toOwnerWord(owner)}" AND words : (${any.join(' OR ')})`
}

function toOwnerWord(owner: string): string {
  return `o${createHash('sha256').update(owner).digest('hex')}`
}

function openFile(path: string): Database {
  const require = createRequire(import.meta.url)
  const Constructor = require('better-sqlite3') as new (path: string, options: object) => Database
  // SQLite fills a file that is empty, and leaves its permissions as they are. A file that is there is not opened: to close it
  // would end the locks of this process on it.
  if (!existsSync(path)) writeFileSync(path, '', { flag: 'a', mode: 0o600 })
  let database: Database
  try {
    database = new Constructor(path, { timeout: busyMs })
  } catch (error) {
    throw explainNativeFailure('sqliteMemory', error, process) ?? error
  }
  try {
    // No write-ahead log, in which a deleted memory would survive; deleted content is overwritten.
    database.pragma('journal_mode = delete')
    database.pragma('synchronous = full')
    database.pragma('secure_delete = on')
    requireOwnFile(database, path)
    database.exec(schema)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

const schema = `
  create table if not exists memory (
    place integer primary key, owner text not null, id integer not null, key text not null, subject text,
    text text not null, at integer not null, removed_under text, unique (owner, id), unique (owner, key)
  ) strict;
  create index if not exists memory_removed on memory (owner, removed_under);
  create index if not exists memory_subject on memory (subject);
  create virtual table if not exists memory_words using fts5(owner, words, tokenize = 'ascii');
  insert into memory_words (memory_words, rank) values ('secure-delete', 1);
`

/** A ledger or a file of keys stays as it is: each has a journal and copies of its own. */
function requireOwnFile(database: Database, path: string): void {
  const other = database.prepare(`select 1 from sqlite_schema where tbl_name not glob 'memory*' limit 1`)
  if (other.get() === undefined) return
  throw new ConfigurationError(
    `${path} is a database of another application, not a file of memories. It was left as it is. Name another file; one that does not exist is created.`,
  )
}
