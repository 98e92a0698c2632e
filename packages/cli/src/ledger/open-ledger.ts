import { existsSync } from 'node:fs'
import { ConfigurationError, LedgerUnavailableError, type Ledger } from '@tallystick/core'
import type { PostgresLedger, PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { CommandError } from '../command/exit-code.ts'
import type { Keyring } from '@tallystick/ledger'
import { openKeys } from './open-keys.ts'
import { isAddress, isPostgres, postgresPlace, shownLedger } from '../command/ledger-place.ts'

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
