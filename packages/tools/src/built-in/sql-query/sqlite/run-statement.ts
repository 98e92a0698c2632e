import { ShownRows } from '../answer/shown-rows.ts'
import type { StatementEnding } from '../answer/statement.ts'
import { bindingsOf, bytesAtLeast, cellJson } from './cells.ts'
import type { StatementRequest } from './protocol.ts'
import { type Database, openReadOnly, type Statement } from './sqlite.ts'
import { nativeFailure } from './native-interface.ts'
import { onlyReads, refusalOf } from './statement-kind.ts'
import { tablesText } from './tables-text.ts'

/**
 * Runs one statement to its end. What is wrong with it, or with the file, is a reply. Calls `onStart` when all that it needs
 * is loaded, open and not locked by a writer, and only the statement is left.
 */
export function runStatement(request: StatementRequest, onStart: () => void): StatementEnding {
  const refusal = refusalOf(request.sql)
  if (refusal !== undefined) return { kind: 'failed', message: refusal }
  let database: Database | undefined
  try {
    database = openReadOnly(request.path, request.lockTimeoutMs)
    startReading(database)
    onStart()
    const statement = database.prepare(request.sql)
    if (!statement.reader || !statement.readonly) return { kind: 'failed', message: onlyReads }
    return read(statement, request)
  } catch (error) {
    return failureOf(error, database, request)
  } finally {
    database?.close()
  }
}

function read(statement: Statement, request: StatementRequest): StatementEnding {
  const columns = statement.columns().map(({ name }) => name)
  const shown = new ShownRows(columns, request)
  for (const cells of statement
    .raw(true)
    .safeIntegers(true)
    .iterate(...bindingsOf(request.parameters))) {
    // A blob of a gigabyte is not made into JSON only to find that it is too large.
    const atLeast = cells.map(bytesAtLeast).reduce((sum, bytes) => sum + bytes, 0)
    if (!shown.add(atLeast, () => cells.map(cellJson))) break
  }
  return shown.ending()
}

/** Begins a transaction that reads, once no writer keeps it from that: the statement then waits for none. */
function startReading(database: Database): void {
  database.exec('BEGIN')
  database.pragma('schema_version')
}

function failureOf(
  error: unknown,
  database: Database | undefined,
  { lockTimeoutMs }: StatementRequest,
): StatementEnding {
  const native = nativeFailure('The database', error)
  if (native) return { kind: 'failed', message: native.message }
  const message = error instanceof Error ? error.message : String(error)
  if (!database) return { kind: 'failed', message: `The database cannot be opened: ${message}.` }
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code === 'string' && code.startsWith('SQLITE_BUSY')) {
    return { kind: 'not_started', why: `another process kept the database locked for ${lockTimeoutMs} ms` }
  }
  // SQLite's word for a statement that does not fit the tables, or is no SQL.
  const schema = code === 'SQLITE_ERROR' ? tablesText(database) : undefined
  return { kind: 'failed', message: `SQLite says: ${message}.`, ...(schema !== undefined && { schema }) }
}
