import { describe, expect, it } from 'vitest'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import { digestsOnlyCases } from './support/digests-only-cases.ts'
import type { RemovalBed } from './support/removal-bed.ts'
import { removalCases } from './support/removal-cases.ts'
import { sealingCases } from './support/sealing-cases.ts'

const places = [
  ...[
    'event.body',
    'event.type',
    'history.message',
    'history.digest',
    'inbox.command',
    'run.run_id',
    'run.head_hash',
  ],
  ...['removal.run_id', 'removal.reason', 'removal.by'],
]

function bed(): RemovalBed {
  const schema = freshSchema()
  return {
    open: (options) => openLedger(schema, options),
    tamper: (statement) => tamperIn(schema, async (client) => void (await client.query(statement))),
    async holds(bytes) {
      for (const place of places) {
        const [table, column] = place.split('.')
        const text = `select from ${schema}.${table} where strpos(${column}, $1) > 0 limit 1`
        if ((await rowsOf(text, [bytes])).length > 0) return true
      }
      return false
    },
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('taking content away from a ledger in Postgres', () => {
  it.each(Object.entries({ ...removalCases, ...sealingCases, ...digestsOnlyCases }))(
    '%s',
    async (_claim, keeps) => {
      await expect(keeps(bed())).resolves.toBeUndefined()
    },
  )
})
