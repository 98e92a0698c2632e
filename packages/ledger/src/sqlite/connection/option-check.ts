import { option, type OptionCheck } from '@tallystick/core/kit'
import { deltaDelay } from '../../content/event/delta-delay.ts'
import { keyring } from '../../content/payload/keyring.ts'
import type { SqliteLedgerOptions } from './sqlite-ledger-options.ts'

const { fields, maybe, milliseconds, trueOrFalse, valueThat } = option

/** What `sqliteLedger` takes beside the path. */
export const sqliteLedgerOptions: OptionCheck = fields<SqliteLedgerOptions>(
  {
    readOnly: maybe(trueOrFalse),
    keys: maybe(keyring),
    busyTimeoutMs: maybe(
      valueThat(
        'a whole number of milliseconds from 0 to 2147483647',
        (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0x7fffffff,
      ),
    ),
    maxWalBytes: maybe(
      valueThat(
        'a whole number of bytes, at least 1',
        (value) => Number.isSafeInteger(value) && (value as number) >= 1,
      ),
    ),
    pollIntervalMs: maybe(milliseconds),
    deltaDelayMs: maybe(deltaDelay),
  },
  { timeout: 'busyTimeoutMs', keyring: 'keys' },
)
