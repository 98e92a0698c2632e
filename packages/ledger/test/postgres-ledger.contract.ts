import type { Ledger } from '@tallystick/core'
import { ledgerContract } from '@tallystick/core/testing'
import { postgresLedger, type PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { describe, it } from 'vitest'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'

const ways: readonly (readonly [string, Partial<PostgresLedgerOptions>])[] = [
  ['postgresLedger', { pollIntervalMs: 60_000 }],
  ['postgresLedger behind a pooler', { pooled: true, pollIntervalMs: 20 }],
]

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres).each(ways)('%s keeps the promises of a ledger', (_name, options) => {
  // oxlint-disable-next-line vitest/expect-expect -- a case rejects when its promise is broken
  it.concurrent.each(ledgerContract)('$promise', async ({ run }) => {
    const schema = freshSchema()
    const opened: Ledger[] = []
    await run(async () => {
      const ledger = postgresLedger({ connectionString, schema, connectionsMax: 4, ...options })
      opened.push(ledger)
      return ledger
    })
    for (const ledger of opened) await ledger.close()
  })
})
