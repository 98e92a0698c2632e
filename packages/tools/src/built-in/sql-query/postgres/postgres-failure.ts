import type { StatementReply } from '../answer/statement.ts'

/** The refusal of a text that is no statement that reads. */
const onlyPostgresReads: string =
  'Only one statement that reads can be run: SELECT, WITH … SELECT, VALUES, TABLE, or EXPLAIN [ANALYZE] [VERBOSE] of these.'

/** What Postgres, or the way to it, says of what went wrong. */
export interface PostgresFailure {
  readonly reply: Exclude<StatementReply, { kind: 'rows' }>
  /** Whether the model may not know the tables. */
  readonly asksForTables: boolean
}

/** Stopped, by the server's own limit. */
const stopped: ReadonlySet<string> = new Set(['57014', '25P03', '25P04'])
/** A lock was not to be had in time. Postgres takes those of a statement before it runs. */
const lockHeld = '55P03'
const locked = 'what it reads was locked for too long by another one'
/** A syntax error; what only reads refuses; what no cursor takes; several statements. */
const notReading: ReadonlySet<string> = new Set(['42601', '25006', '0A000', '42P11', '42P03'])
/** No such table, column, function, or type; a syntax error. */
const unknownNames: ReadonlySet<string> = new Set(['42P01', '42703', '42883', '42704', '42601'])

/** Why a statement has no answer. Names no host and no user: the model reads it. */
export function postgresFailure(error: unknown): PostgresFailure {
  const { code = '', message = String(error), hint, severity } = error as Partial<Record<string, string>>
  const failed = (text: string, asksForTables = false): PostgresFailure => ({
    reply: { kind: 'failed', message: text },
    asksForTables,
  })
  if (severity === undefined) {
    const why = /^E[A-Z_]+$/.test(code) ? ` (${code})` : ''
    return failed(`The database cannot be reached, or the connection to it was lost${why}.`)
  }
  if (code === lockHeld) return { reply: { kind: 'not_started', why: locked }, asksForTables: false }
  if (stopped.has(code)) return { reply: { kind: 'timed_out' }, asksForTables: false }
  if (/^(28|3D)/.test(code)) return failed(`The database does not let this tool in (${code}).`)
  if (/^(53|57P)/.test(code)) return failed(`The database cannot be used now (${code}).`)
  const parts = [
    `Postgres says: ${message}.`,
    hint,
    notReading.has(code) ? `${onlyPostgresReads} Nothing was changed.` : undefined,
  ]
  return failed(parts.filter((part) => part !== undefined).join(' '), unknownNames.has(code))
}
