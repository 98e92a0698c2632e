import { existsSync } from 'node:fs'
import {
  ConfigurationError,
  type Ledger,
  LedgerUnavailableError,
  type RunId,
  TallystickError,
} from '@tallystick/core'
import { type Keyring, countProjectionLag, type ProjectionOptions } from '@tallystick/ledger'
import type { PostgresLedger, PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { sqliteKeyring, type SqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import {
  type CommandContext,
  isAddress,
  isPostgres,
  parsePostgresPlace,
  hidePassword,
} from '../command/context.ts'
import { CommandError, type ExitCode, chooseExitCode, exitCodes } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'

/** The environment variable that names the keyring of ledgers. */
const keysVariable = 'TALLYSTICK_KEYS'

/**
 * Opens the keyring that the environment names; `undefined` if it names none: sealed content then stays unreadable. Throws
 * a `CommandError` (`not_found`) for a file that does not exist: a new keyring would open nothing.
 */
function openKeys(): SqliteKeyring | undefined {
  const path = process.env[keysVariable]
  if (path === undefined || path === '') return undefined
  if (existsSync(path)) return sqliteKeyring(path)
  throw new CommandError(
    'not_found',
    `There is no keyring at ${path}, which ${keysVariable} names. Name its file; a new keyring is made by sqliteKeyring(path) of @tallystick/ledger/sqlite.`,
  )
}

/** Why a ledger is opened: to read it; to command and drive its runs; or to create it if it does not exist. */
export type LedgerAccess = 'read' | 'write' | 'make'

/**
 * Opens a ledger, a file of SQLite or a schema in Postgres, and closes it after `use`. Rejects with a `CommandError`
 * (`not_found`) if it does not exist and `access` is not `make`.
 */
export async function withLedger<Result>(
  place: string,
  access: LedgerAccess,
  use: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  if (isAddress(place) && !isPostgres(place)) {
    throw new ConfigurationError(
      `${hidePassword(place)} is not a ledger: it is neither a path nor postgres://…. Give the path of a SQLite file, or postgres://….`,
    )
  }
  const keyring = openKeys()
  const keys = keyring ? { keys: keyring } : {}
  try {
    const ledger = isPostgres(place)
      ? await openPostgres(place, access, keys)
      : openSqlite(place, access, keys)
    try {
      return await use(ledger)
    } finally {
      await ledger.close()
    }
  } finally {
    keyring?.close()
  }
}

function openSqlite(path: string, access: LedgerAccess, keys: { readonly keys?: Keyring }): Ledger {
  if (access !== 'make' && !existsSync(path)) {
    throw new CommandError(
      'not_found',
      `There is no ledger at ${path}. Name the file that the runs were recorded in, or a postgres:// connection string.`,
    )
  }
  return sqliteLedger(path, { readOnly: access === 'read', ...keys })
}

async function openPostgres(
  connectionString: string,
  access: LedgerAccess,
  keys: { readonly keys?: Keyring },
): Promise<Ledger> {
  const place = parsePostgresPlace(connectionString)
  const open = await importPostgres()
  if (access !== 'make') await requireThere(open({ ...place, readOnly: true }))
  return open({ ...place, readOnly: access === 'read', ...keys })
}

/**
 * Rejects if the ledger does not exist. It checks a ledger opened to read, and closes it: opening one to write would
 * create it.
 */
async function requireThere(ledger: Ledger): Promise<void> {
  try {
    await ledger.runs({ limit: 1 })[Symbol.asyncIterator]().next()
  } catch (error) {
    const isAbsent = error instanceof LedgerUnavailableError && error.reason === 'absent'
    // The command meets any other error itself when it opens the ledger.
    if (isAbsent) throw new CommandError('not_found', error.message, { cause: error })
  } finally {
    await ledger.close()
  }
}

/** The driver is an optional package that the user installs beside the command. */
async function importPostgres(): Promise<(options: PostgresLedgerOptions) => PostgresLedger> {
  const { postgresLedger } = await import('@tallystick/ledger/postgres')
  return (options) => {
    try {
      return postgresLedger(options)
    } catch (error) {
      const { cause } = error as Error
      if ((cause as NodeJS.ErrnoException | undefined)?.code !== 'ERR_MODULE_NOT_FOUND') throw error
      throw new ConfigurationError(
        'A ledger in Postgres needs the package pg, which is not installed here. Install it beside @tallystick/cli: npm install pg',
        { cause },
      )
    }
  }
}

/** Counts the events of a ledger, or of one run, from the ends of its runs. */
export async function countEvents(ledger: Ledger, runId?: RunId): Promise<number> {
  if (runId !== undefined) return (await ledger.head(runId))?.seq ?? 0
  let events = 0
  for await (const { head } of ledger.runs()) events += head.seq
  return events
}

/** Folding this many events is faster than opening the ledger to keep the summaries. */
const maxEventsInMemory = 2_000

/** An open ledger, and how summaries of its runs are read. */
export interface SummarizedLedger {
  readonly ledger: Ledger
  readonly options: ProjectionOptions
  /** Clears the line of progress before something else is written. */
  readonly context: CommandContext
}

/**
 * Opens a ledger to read summaries of all its runs. If its projections lag far behind, and the ledger can be written, they
 * are updated first; else the summaries are read without writing anything.
 */
export async function withSummaries<Result>(
  context: CommandContext,
  ledgerPath: string,
  use: (opened: SummarizedLedger) => Promise<Result>,
): Promise<Result> {
  const summarize = (ledger: Ledger, lag: number): Promise<Result> =>
    withProgress(
      context,
      async () => (lag > 0 ? lag : await countEvents(ledger)),
      (progress) => use({ ledger, context: progress.context, options: { onProgress: progress.add } }),
    )
  const opened = await withLedger(ledgerPath, 'read', async (ledger) => {
    const lag = (await countProjectionLag(ledger)) ?? 0
    return lag > maxEventsInMemory ? { lag } : { result: await summarize(ledger, lag) }
  })
  if ('result' in opened) return opened.result
  let isWritable = false
  try {
    return await withLedger(ledgerPath, 'write', async (ledger) => {
      // Opens the store and changes nothing.
      await ledger.runs({ limit: 1 })[Symbol.asyncIterator]().next()
      isWritable = true
      return await summarize(ledger, opened.lag)
    })
  } catch (error) {
    if (isWritable || !(error instanceof LedgerUnavailableError)) throw error
  }
  return await withLedger(ledgerPath, 'read', (ledger) => summarize(ledger, opened.lag))
}

/** Reports each run that cannot be read on stderr. The first one gives the exit code of the command. */
export class UnreadableRuns {
  readonly #context: CommandContext
  #exitCode: ExitCode | undefined

  constructor(context: CommandContext) {
    this.#context = context
  }

  report({ code, message }: { readonly code: string; readonly message: string }): void {
    const exitCode = chooseExitCode(new TallystickError(code, message))
    this.#exitCode ??= exitCode
    const { json, say } = this.#context
    say(json ? JSON.stringify({ error: { code, message, exitCode } }) : `error: ${message}`)
  }

  get exitCode(): ExitCode {
    return this.#exitCode ?? exitCodes.ok
  }
}
