import { afterEach, describe, expect, it, vi } from 'vitest'
import { PostgresHistories } from '../src/postgres/write/histories.ts'
import { chat, countedRows, keptTables, type SessionBed } from './support/session-bed.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import { eventsOf } from './support/removal-bed.ts'
import { sessionCases } from './support/session-cases.ts'

afterEach(() => void vi.restoreAllMocks())

function bed(): SessionBed {
  const schema = freshSchema()
  const methods = ['piece', 'chain'] as const
  const [one, all] = methods.map((name) => vi.spyOn(PostgresHistories.prototype, name))
  return {
    open: (options) => openLedger(schema, options),
    // Rules about what rows refer to are kept by triggers of Postgres itself.
    tamper: (statement) =>
      tamperIn(schema, async (client) => {
        await client.query(`set session_replication_role = replica; ${statement}`)
      }),
    async holds(bytes) {
      const places = ['payload.body', 'content.body', 'history.body', 'inbox.body']
      for (const [table, column] of places.map((place) => place.split('.'))) {
        const text = `select from ${schema}.${table} where position(convert_to($1, 'UTF8') in ${column}) > 0 limit 1`
        if ((await rowsOf(text, [bytes])).length > 0) return true
      }
      return false
    },
    async stored() {
      const sum = { rows: 0, bytes: 0 }
      for (const table of keptTables) {
        const [row] = await rowsOf<{ rows: string; bytes: string | null }>(
          `select count(*) as rows, sum(length(each::text)) as bytes from ${countedRows(table, `${schema}.`)}`,
        )
        sum.rows += Number(row?.rows)
        sum.bytes += Number(row?.bytes ?? 0)
      }
      return sum
    },
    rowsApart: 8,
    pieces: async () => (await rowsOf(`select from ${schema}.history`)).length,
    // A chain is as many as a thousand: the next run of a session reads none.
    piecesRead: () => (one?.mock.calls.length ?? 0) + (all?.mock.calls.length ?? 0) * 1000,
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('sessions in a ledger in Postgres', () => {
  it.each(Object.entries(sessionCases))('%s', async (_claim, keeps) => {
    await expect(keeps(bed())).resolves.toBeUndefined()
  })

  it('a history that is taken away while a run that follows it is appended is written anew', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const begun = vi.spyOn(PostgresHistories.prototype, 'begun')
    begun.mockImplementationOnce(async (history) => ({
      name: history.name,
      piece: { ...history.piece(0), before: 'gone meanwhile', digest: '' },
    }))
    const [first, second] = await chat(ledger, 2)
    expect(begun).toHaveBeenCalledTimes(2)
    const other = openLedger(schema)
    for (const runId of [first, second]) {
      expect(await eventsOf(other, runId!)).toEqual(await eventsOf(ledger, runId!))
    }
  })
})
