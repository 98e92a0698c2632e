import { explainNativeFailure, readCode } from '@tallystick/core/internal'
import { createRequire } from 'node:module'
import type { Json } from '@tallystick/core/vocabulary'
import { boundText } from '../../define/text.ts'
import { type ParameterValue, ShownRows, type StatementEnding, type StatementRequest } from './answer.ts'

/**
 * Runs one statement to its end. What is wrong with it, or with the file, is a reply. Calls `onStart` when all that it needs
 * is loaded, open and not locked by a writer, and only the statement is left.
 */
export function runStatement(request: StatementRequest, onStart: () => void): StatementEnding {
  const refusal = refuseUnseen(request.sql)
  if (refusal !== undefined) return { kind: 'failed', message: refusal }
  let database: Database | undefined
  try {
    database = openReadOnly(request.path, request.lockTimeoutMs)
    // Begins a transaction that reads, once no writer keeps it from that: the statement then waits for none.
    database.exec('BEGIN')
    database.pragma('schema_version')
    onStart()
    const statement = database.prepare(request.sql)
    if (!statement.reader || !statement.readonly) return { kind: 'failed', message: onlyReads }
    const columns = statement.columns().map(({ name }) => name)
    const shown = new ShownRows(columns, request)
    const bindings = toBindings(request.parameters)
    for (const cells of statement
      .raw(true)
      .safeIntegers(true)
      .iterate(...bindings)) {
      // A blob of a gigabyte is not made into JSON only to find that it is too large.
      const sizes = cells.map((cell) =>
        typeof cell === 'string' || cell instanceof Uint8Array ? cell.length : 1,
      )
      const atLeast = sizes.reduce((sum, size) => sum + size, 0)
      if (!shown.add(atLeast, () => cells.map(toJsonCell))) break
    }
    return shown.ending()
  } catch (error) {
    return describeFailure(error, database, request)
  } finally {
    database?.close()
  }
}

function describeFailure(
  error: unknown,
  database: Database | undefined,
  { lockTimeoutMs }: StatementRequest,
): StatementEnding {
  const native = explainNativeFailure('The database', error, process)
  if (native) return { kind: 'failed', message: native.message }
  const message = error instanceof Error ? error.message : String(error)
  if (!database) return { kind: 'failed', message: `The database cannot be opened: ${message}.` }
  const code = readCode(error)
  if (code?.startsWith('SQLITE_BUSY')) {
    return { kind: 'not_started', why: `another process kept the database locked for ${lockTimeoutMs} ms` }
  }
  // SQLite's word for a statement that does not fit the tables, or is not SQL.
  const schema = code === 'SQLITE_ERROR' ? describeTables(database) : undefined
  return { kind: 'failed', message: `SQLite says: ${message}.`, ...(schema !== undefined && { schema }) }
}

/** A value as SQLite gives it out; integers are bigints. */
type Cell = null | string | number | bigint | Uint8Array
/** A value as SQLite takes it in. */
type Binding = null | string | number | bigint

/** Parameters as SQLite takes them: whole numbers as integers, since `?` of a JavaScript number is a REAL. */
function toBindings(
  parameters: StatementRequest['parameters'],
): readonly Binding[] | readonly [Readonly<Record<string, Binding>>] {
  const toBinding = (value: ParameterValue): Binding => {
    if (typeof value === 'boolean') return value ? 1n : 0n
    return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
  }
  if (Array.isArray(parameters)) return (parameters as readonly ParameterValue[]).map(toBinding)
  const named = Object.entries(parameters as Readonly<Record<string, ParameterValue>>)
  return [Object.fromEntries(named.map(([name, value]) => [name.replace(/^[:@$]/, ''), toBinding(value)]))]
}

/**
 * A value as JSON: integers beyond 2^53 as their digits in a string, blobs as `{ base64, bytes }`, infinities as text.
 */
function toJsonCell(cell: Cell): Json {
  if (typeof cell === 'bigint') {
    const number = Number(cell)
    return Number.isSafeInteger(number) ? number : cell.toString()
  }
  if (typeof cell === 'number' && !Number.isFinite(cell)) return String(cell)
  if (cell instanceof Uint8Array) {
    return { base64: Buffer.from(cell).toString('base64'), bytes: cell.length }
  }
  return cell
}

/** The part of better-sqlite3 that is used; it ships no types. */
interface Database {
  pragma(source: string): unknown
  exec(sql: string): unknown
  prepare(sql: string): Statement
  close(): void
}

/** A compiled statement. */
interface Statement {
  readonly reader: boolean
  readonly readonly: boolean
  raw(on: boolean): Statement
  safeIntegers(on: boolean): Statement
  columns(): readonly { readonly name: string }[]
  iterate(
    ...bindings: readonly (Binding | Readonly<Record<string, Binding>>)[]
  ): IterableIterator<readonly Cell[]>
}

/** Opens a SQLite file so that no statement can change it or anything else. */
function openReadOnly(path: string, busyMs: number): Database {
  const require = createRequire(import.meta.url)
  const Constructor = require('better-sqlite3') as new (path: string, options: object) => Database
  const database = new Constructor(path, { readonly: true, fileMustExist: true, timeout: busyMs })
  database.pragma('query_only = ON')
  // Views and generated columns of the file itself may not call unsafe functions.
  database.pragma('trusted_schema = OFF')
  // Sorting and recursion stay in memory, which is watched, and do not fill the disk.
  database.pragma('temp_store = MEMORY')
  return database
}

/** The refusal of a text that may change something, or that is not a statement. */
const onlyReads: string =
  'Only one statement that reads can be run: SELECT, WITH … SELECT, VALUES, or EXPLAIN QUERY PLAN of these. ' +
  'Nothing was run.'

const readingWords: ReadonlySet<string> = new Set(['SELECT', 'WITH', 'VALUES'])

/**
 * Why a text is refused unseen by SQLite, if it is. Some PRAGMAs take effect while they are compiled, so what is no
 * reading statement by its first word must not even be prepared; whether it reads only, SQLite says then.
 */
export function refuseUnseen(sql: string): string | undefined {
  if (sql.includes('\0')) return `${onlyReads} The text holds a NUL character.`
  const words = readWords(sql)
  let word = words.next().value
  if (word === 'EXPLAIN') word = words.next().value
  if (word === 'QUERY' && words.next().value === 'PLAN') word = words.next().value
  return word !== undefined && readingWords.has(word) ? undefined : onlyReads
}

/**
 * The words that a statement begins with, in upper case, up to the first character that belongs to none: letters, digits, `_`,
 * `$`, and what is beyond ASCII, which SQLite takes for letters. A comment that is not ended goes to the end.
 */
function* readWords(sql: string): Generator<string, undefined> {
  const piece = /[ \t\n\f\r]+|--[^\n]*|\/\*[^]*?(?:\*\/|$)|(?<word>[\w$\u0080-\uffff]+)/y
  for (let found = piece.exec(sql); found !== null; found = piece.exec(sql)) {
    const word = found.groups?.['word']
    if (word !== undefined) yield word.toUpperCase()
  }
  return undefined
}

const maxTables = 50
const maxCharacters = 4_000

/** The tables and views of a database with their columns, one a line, as in `orders(id INTEGER, total)`. */
function describeTables(database: Database): string | undefined {
  try {
    const names = readTexts(database, namesQuery)
    const lines = names.slice(0, maxTables).map((name) => {
      try {
        return `${name}(${readTexts(database, columnsQuery, name).join(', ')})`
      } catch {
        // A view whose tables are gone has no columns.
        return `${name}(unreadable)`
      }
    })
    if (names.length > maxTables) lines.push(`… and ${names.length - maxTables} more`)
    return lines.length === 0 ? 'none' : boundText(lines.join('\n'), maxCharacters)
  } catch {
    return undefined
  }
}

const namesQuery = `SELECT name FROM sqlite_schema
  WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`
const columnsQuery = `SELECT trim(name || ' ' || type) FROM pragma_table_info(?) ORDER BY cid`

function readTexts(database: Database, sql: string, ...bindings: readonly string[]): readonly string[] {
  return Array.from(
    database
      .prepare(sql)
      .raw(true)
      .iterate(...bindings),
    ([text]) => String(text),
  )
}
