import type { Ledger } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import type { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { loadQueries } from '../src/store/database.ts'
import { forgetProjections } from '../src/store/removals.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
  withClient,
} from './support/postgres-database.ts'
import { longRun } from './support/long-run.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import type { ProjectionBed } from './support/projection-bed.ts'
import { projectionCases } from './support/projection-cases.ts'
import { refreshingProcess } from './support/refreshing-process.ts'

function bed(opened: Ledger[]): ProjectionBed {
  const schema = freshSchema()
  return {
    isQuick: false,
    open(options) {
      const ledger = postgresLedger({ connectionString, schema, maxConnections: 4, ...options })
      opened.push(ledger)
      return ledger
    },
    tamper: (statement) => tamperIn(schema, async (client) => void (await client.query(statement))),
    rows: (query) =>
      withClient(async (client) => {
        await client.query(`set search_path = ${schema}`)
        return (await client.query<Record<string, unknown>>(query)).rows.map(withNumbers)
      }),
    plan: (text, values) =>
      withClient(async (client) => {
        await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off')
        const { rows } = await client.query<{ 'QUERY PLAN': string }>(
          `explain ${text.replaceAll('@.', `${schema}.`)}`,
          [...values],
        )
        return rows.map((row) => row['QUERY PLAN']).join('\n')
      }),
    refresher: () => refreshingProcess(connectionString, schema),
  }
}

/** Whether another connection waits for what a connection holds. */
async function isWaitedFor(client: Client): Promise<boolean> {
  const { rows } = await client.query(
    `select from pg_locks where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))`,
  )
  return rows.length > 0
}

/** Without options, the driver returns large whole numbers as texts. */
function withNumbers(row: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const isNumber = typeof value === 'string' && /^\d+$/.test(value) && value.length < 16
      return [name, isNumber ? Number(value) : value]
    }),
  )
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('projections in Postgres', () => {
  it.concurrent.each(Object.entries(projectionCases))('%s', async (_claim, holds) => {
    const opened: Ledger[] = []
    await expect(holds(bed(opened))).resolves.toBeUndefined()
    for (const ledger of opened) await ledger.close()
  })

  it('leave no snapshot of an event whose content is removed at the same moment', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const runId = await longRun(ledger, 25)
    await withClient(async (client) => {
      await client.query('begin')
      const steps = forgetProjections(await loadQueries(schema), runId)
      for (let next = steps.next([]); !next.done; next = steps.next([]))
        await client.query(next.value.sql, [...next.value.parameters])
      const fold = { isDone: false }
      const folding = foldTo(ledger, runId).finally(() => (fold.isDone = true))
      while (!fold.isDone && !(await isWaitedFor(client))) {
        // The fold comes to the row that is held.
      }
      await client.query('commit')
      await folding
    })
    expect(await rowsOf(`select seq from ${schema}.snapshot`)).toEqual([])
    await foldTo(ledger, runId)
    expect(await rowsOf(`select seq from ${schema}.snapshot`)).toHaveLength(1)
  })
})
