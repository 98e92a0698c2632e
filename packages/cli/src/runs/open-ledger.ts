import { existsSync } from 'node:fs'
import {
  ConfigurationError,
  type Ledger,
  LedgerUnavailableError,
  type RunId,
  TallystickError,
} from '@tallystick/core'
import { type Keyring, projectionLag, type ProjectionOptions } from '@tallystick/ledger'
import type { PostgresLedger, PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { sqliteKeyring, type SqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { type CommandContext, isAddress, isPostgres, postgresPlace, shownLedger } from '../command/context.ts'
import { CommandError, type ExitCode, exitCodeOf, exitCodes } from '../command/exit-code.ts'
import { withProgress } from '../command/progress.ts'

/** Names the file of the keyring that ledgers are opened with. */
const keysVariable = 'TALLYSTICK_KEYS'

/**
 * The keyring that the environment names; none where it names none, and what is sealed is then shown as far as that goes
 * without a key. Throws a `CommandError` (`not_found`) for a file that is not there: a new one would open nothing.
 */
function openKeys(environment: NodeJS.ProcessEnv): SqliteKeyring | undefined {
  const path = environment[keysVariable]
  if (path === undefined || path === '') return undefined
  if (existsSync(path)) return sqliteKeyring(path)
  throw new CommandError(
    'not_found',
    `There is no keyring at ${path}, which ${keysVariable} names. Name its file.`,
  )
}

/** Why a ledger is opened: to read it; to command and drive its runs; or to create it if it does not exist. */
export type LedgerAccess = 'read' | 'write' | 'make'

type GivenKeys = { readonly keys?: Keyring }

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
      `${shownLedger(place)} is no ledger: it is neither a path nor postgres://…. Give the path of a SQLite file, or postgres://….`,
    )
  }
  const keyring = openKeys(process.env)
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

function openSqlite(path: string, access: LedgerAccess, keys: GivenKeys): Ledger {
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
  keys: GivenKeys,
): Promise<Ledger> {
  const place = postgresPlace(connectionString)
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
    // The command itself meets any other error when it opens the ledger.
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

/** How many events a ledger holds, as the ends of its runs say. */
export async function countEvents(ledger: Ledger): Promise<number> {
  let events = 0
  for await (const { head } of ledger.runs()) events += head.seq
  return events
}

/** So many events are folded sooner than the ledger is opened to keep what they come to. */
const maxEventsInMemory = 2_000

/** An open ledger, with what reading summaries of its runs needs. */
export interface SummarizedLedger {
  readonly ledger: Ledger
  readonly options: ProjectionOptions
  /** The context in which the line of progress goes away before something else is written. */
  readonly context: CommandContext
}

/**
 * Opens a ledger to read summaries of all its runs. When its projections lag far, they are updated first, if the
 * ledger can be written; else the summaries are read without writing anything.
 */
export async function withSummaries<Result>(
  context: CommandContext,
  ledgerPath: string,
  use: (opened: SummarizedLedger) => Promise<Result>,
): Promise<Result> {
  const opened = await withLedger(ledgerPath, 'read', async (ledger) => {
    const lag = (await projectionLag(ledger)) ?? 0
    return lag > maxEventsInMemory ? { lag } : { result: await summarizing(context, ledger, { lag, use }) }
  })
  if ('result' in opened) return opened.result
  const { lag } = opened
  return await withWritable(ledgerPath, (ledger) => summarizing(context, ledger, { lag, use }))
}

/** A ledger that was opened to read keeps no summaries. */
function summarizing<Result>(
  context: CommandContext,
  ledger: Ledger,
  { lag, use }: { readonly lag: number; readonly use: (opened: SummarizedLedger) => Promise<Result> },
): Promise<Result> {
  return withProgress(
    context,
    async () => (lag > 0 ? lag : await countEvents(ledger)),
    (progress) => use({ ledger, context: progress.context, options: { onProgress: progress.add } }),
  )
}

/** Opens a ledger to write, so that it keeps what is computed; to read where it cannot be written. */
export async function withWritable<Result>(
  ledgerPath: string,
  use: (ledger: Ledger) => Promise<Result>,
): Promise<Result> {
  let isWritable = false
  try {
    return await withLedger(ledgerPath, 'write', async (ledger) => {
      // Opens the store, and changes nothing of it.
      await ledger.runs({ limit: 1 })[Symbol.asyncIterator]().next()
      isWritable = true
      return await use(ledger)
    })
  } catch (error) {
    if (isWritable || !(error instanceof LedgerUnavailableError)) throw error
  }
  return await withLedger(ledgerPath, 'read', use)
}

/** Codes of errors that are about the record of one run, and say nothing about the others. */
const ofOneRun: ReadonlySet<string> = new Set([
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
])

/**
 * Reads runs of a ledger, one after the other. A run that cannot be read is named on stderr, and the others are still
 * read; the exit code is that of the first such run.
 */
export async function readEachRun(
  { json, say }: CommandContext,
  runs: AsyncIterable<RunId>,
  read: (runId: RunId) => Promise<void>,
): Promise<ExitCode> {
  let first: ExitCode | undefined
  for await (const runId of runs) {
    try {
      await read(runId)
    } catch (error) {
      if (!(error instanceof TallystickError) || !ofOneRun.has(error.code)) throw error
      const { code, message } = error
      const exitCode = exitCodeOf(error)
      first ??= exitCode
      say(json ? JSON.stringify({ error: { code, message, exitCode } }) : `error: ${message}`)
    }
  }
  return first ?? exitCodes.ok
}

/** Every run, in the order in which they were made. */
export async function* runsFromTheFirst(ledger: Ledger): AsyncGenerator<RunId> {
  const runIds: RunId[] = []
  for await (const { runId } of ledger.runs()) runIds.push(runId)
  yield* runIds.toReversed()
}
