import { LedgerDamagedError, LedgerUnavailableError, TallystickError } from '@tallystick/core'

/** The code of a failure: Postgres's own, such as `23505`, or the system's, such as `ECONNREFUSED`. */
function failureCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  return error instanceof AggregateError ? failureCode(error.errors[0]) : undefined
}

/** The name of the constraint or index that refused, where one did. */
export function refusingConstraint(error: unknown): string | undefined {
  if (failureCode(error) !== '23505' || !(error instanceof Error)) return undefined
  return 'constraint' in error && typeof error.constraint === 'string' ? error.constraint : undefined
}

/** Whether something is not there, or no more, that a row refers to. */
export function isMissingReference(error: unknown): boolean {
  return failureCode(error) === '23503'
}

/** What the triggers of the schema raise. */
export const refusalCode = 'TL001'
/** What they raise if a run was to end with entries in its inbox, or if an entry comes after a run's end. */
export const unreadCode = 'TL002'
export const endedCode = 'TL003'
/** What they raise if a run that was dropped was to begin again. */
export const droppedCode = 'TL004'

/** Whether a run was to begin again that was dropped. */
export function isDropped(error: unknown): boolean {
  return failureCode(error) === droppedCode
}

/** Whether a run was to end with unread entries in its inbox. */
export function isUnread(error: unknown): boolean {
  return failureCode(error) === unreadCode
}

/** Whether an entry came after the end of its run. */
export function isAfterEnd(error: unknown): boolean {
  return failureCode(error) === endedCode
}

const lostMessage = /^(Connection terminated|Client has encountered a connection error|Connection ended)/
const lostCode = /^(08|57P0[12]|ECONNRESET$|EPIPE$|ERR_STREAM_)/

/** Whether the connection was lost, so that it is unknown whether the statement was carried out. */
export function isConnectionLost(error: unknown): boolean {
  const code = failureCode(error)
  if (code !== undefined) return lostCode.test(code)
  // A connection that could not be made in time was never there.
  return error instanceof Error && lostMessage.test(error.message) && !/timeout/.test(error.message)
}

/** Whether Postgres undid the statement because of what others did at the same time, and it may be sent again. */
export function isContention(error: unknown): boolean {
  return /^(40001|40P01)$/.test(failureCode(error) ?? '')
}

/** Whether pg gave up waiting for an answer: the connection is still busy with the question. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout'
}

/**
 * Codes that say that the database is not what was written: broken batches; a schema that lacks what our statements
 * name; a trigger that stops an append which the run's own head allows; a number that no column holds, which came from a
 * row, since what callers give is checked.
 */
const damage = /^(XX00[012]$|22003$|23|42P01|42703|42883|3F000)/

const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|57P03)/,
    'The server cannot be reached. Start it, or look at the connection string and the network; then resume the run.',
  ],
  [
    /^28/,
    'The server does not let this user in. Look at the user and the password of the connection string.',
  ],
  [/^3D000/, 'There is no such database. Make it, or name another in the connection string.'],
  [
    /^53300/,
    'The server has no connection left. Lower maxConnections, or raise max_connections of the server.',
  ],
  [/^53/, 'The server has run out of disk or memory. Make room, then resume the run.'],
  [
    /^57014/,
    'The statement took too long, and nothing of it was written. Look for what holds the server up, or raise statementTimeoutMs.',
  ],
  [/^55P03/, 'Another session holds a lock for too long. End that session, then resume the run.'],
  [
    /^25006/,
    'The server only reads: it is a standby. Name the primary in the connection string, or open with readOnly.',
  ],
  [
    /^42501/,
    'The role may not do this. Grant it what the README lists, or open with readOnly where it is only to read.',
  ],
  [
    /^(26000|42P05|08P01)/,
    'Statements do not stay on their connection, as behind a pooler in transaction mode. Open with pooled: true.',
  ],
  [/^40/, 'Others wrote the same rows at the same time, again and again. Resume the run.'],
]

/** What happened as an error of ours: damage, or a store that is not available. Errors of ours pass through. */
export function ledgerFailure(error: unknown, description: string): TallystickError {
  if (error instanceof TallystickError) return error
  const code = failureCode(error)
  const reason = reasonOf(error)
  if (code !== undefined && (code === refusalCode || damage.test(code))) {
    return new LedgerDamagedError(
      `The ledger at ${description} is damaged: ${reason}. What it says cannot be trusted. Run verify on it, and restore a copy.`,
      { cause: error },
    )
  }
  const codeText = code === undefined || reason.includes(code) ? '' : ` (${code})`
  return new LedgerUnavailableError(
    `The ledger at ${description} is not available: ${reason}${codeText}. ${remedyOf(error, code)}`,
    { cause: error },
  )
}

function remedyOf(error: unknown, code: string | undefined): string {
  if (isConnectionLost(error) || isUnanswered(error)) {
    return (
      'Whether the last statement was carried out is not known; what was acknowledged is not lost. ' +
      'Resume the run when the server answers: an append that was committed already is recognised.'
    )
  }
  if (/timeout/.test(reasonOf(error)) && code === undefined) {
    return 'No connection came free or was accepted in time. Look at the server, or raise connectTimeoutMs or maxConnections.'
  }
  return remedies.find(([codes]) => codes.test(code ?? ''))?.[1] ?? 'Nothing was written.'
}

/** The first line, since an AggregateError has none of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}
