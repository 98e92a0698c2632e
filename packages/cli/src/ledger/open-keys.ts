import { existsSync } from 'node:fs'
import { sqliteKeyring, type SqliteKeyring } from '@tallystick/ledger/sqlite'
import { CommandError } from '../command/exit-code.ts'

/** Names the file of the keyring that ledgers are opened with. */
const keysVariable = 'TALLYSTICK_KEYS'

/**
 * The keyring that the environment names; none where it names none, and what is sealed is then shown as far as that goes
 * without a key. Throws a `CommandError` (`not_found`) for a file that is not there: a new one would open nothing.
 */
export function openKeys(environment: NodeJS.ProcessEnv): SqliteKeyring | undefined {
  const path = environment[keysVariable]
  if (path === undefined || path === '') return undefined
  if (existsSync(path)) return sqliteKeyring(path)
  throw new CommandError(
    'not_found',
    `There is no keyring at ${path}, which ${keysVariable} names. Name its file.`,
  )
}
