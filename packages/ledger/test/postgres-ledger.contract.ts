import type { Ledger } from '@tallystick/core'
import { ledgerContract } from '@tallystick/testkit/contract'
import { postgresLedger, type PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { connectionString, freshSchema, hasPostgres } from './support/postgres-database.ts'
import { emptyIn } from './support/postgres-recorded.ts'
import { transactionPooler, type Pooler } from './support/postgres-pooler.ts'

let pooler: Pooler | undefined
beforeAll(async () => {
  if (hasPostgres) pooler = await transactionPooler(connectionString)
})
afterAll(() => pooler?.close())

const ways: readonly { readonly name: string; readonly options: () => PostgresLedgerOptions }[] = [
  { name: 'postgresLedger', options: () => ({ connectionString, pollIntervalMs: 60_000 }) },
  {
    name: 'postgresLedger behind a pooler in transaction mode',
    options: () => ({ connectionString: pooler?.connectionString ?? '', pooled: true, pollIntervalMs: 20 }),
  },
]

/** Schemas whose cases have ended well. To empty one is quicker than to make one. */
const emptied: string[] = []

/** All of them in a thorough run. SQLite and the ledger in memory are held to all of them in a quick one as well. */
const cases = ledgerContract.filter((_case, index) => index % effort({ quick: 3, thorough: 1 }) === 0)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres).each(effort({ quick: ways.slice(0, 1), thorough: ways }))(
  '$name keeps the promises of a ledger',
  ({ options }) => {
    // oxlint-disable-next-line vitest/expect-expect -- a case rejects when its promise is broken
    it.concurrent.each(cases)('$promise', async ({ run }) => {
      const schema = emptied.pop() ?? freshSchema()
      const opening = { ...options(), schema, maxConnections: 4 }
      const opened: Ledger[] = []
      await run(async () => {
        const ledger = postgresLedger(opening)
        opened.push(ledger)
        return ledger
      })
      for (const ledger of opened) await ledger.close()
      await emptyIn(schema)
      emptied.push(schema)
    })
  },
)
