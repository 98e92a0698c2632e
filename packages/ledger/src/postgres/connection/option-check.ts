import { option, type OptionCheck } from '@tallystick/core/kit'
import { deltaDelay } from '../../content/event/delta-delay.ts'
import { keyring } from '../../content/payload/keyring.ts'
import type { PostgresLedgerOptions } from './postgres-ledger-options.ts'

const { anyText, fields, maybe, trueOrFalse, valueThat } = option

function wholeTo(max: number): OptionCheck {
  return valueThat(
    `a whole number from 1 to ${max}`,
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max,
  )
}

/** What `postgresLedger` takes. */
export const postgresLedgerOptions: OptionCheck = fields<PostgresLedgerOptions>(
  {
    connectionString: anyText,
    schema: maybe(anyText),
    keys: maybe(keyring),
    readOnly: maybe(trueOrFalse),
    pooled: maybe(trueOrFalse),
    maxConnections: maybe(wholeTo(10_000)),
    connectTimeoutMs: maybe(wholeTo(0x7fffffff)),
    statementTimeoutMs: maybe(wholeTo(0x7ffffbff)),
    pollIntervalMs: maybe(wholeTo(0x7fffffff)),
    deltaDelayMs: maybe(deltaDelay),
  },
  {
    url: 'connectionString',
    connection: 'connectionString',
    host: 'connectionString',
    max: 'maxConnections',
    poolSize: 'maxConnections',
    keyring: 'keys',
    readonly: 'readOnly',
  },
)
