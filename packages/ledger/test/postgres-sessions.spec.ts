import { afterEach, describe, expect, it, vi } from 'vitest'
import { Connections } from '../src/postgres/connections.ts'
import { onAsk } from './support/lent-store.ts'
import { chat, countedRows, keptTables, type SessionBed } from './support/session-bed.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { tamperIn } from './support/postgres-recorded.ts'
import { eventsOf } from './support/removal-bed.ts'
import { sessionCases } from './support/session-cases.ts'

afterEach(() => void vi.restoreAllMocks())

function bed(): SessionBed {
  const schema = freshSchema()
  let piecesRead = 0
  return {
    open: (options) => {
      const ledger = openLedger(schema, options)
      onAsk(ledger, (text) => (piecesRead += text.includes('from @.history') ? 1 : 0))
      return ledger
    },
    // Rules about what rows refer to are kept by triggers of Postgres itself.
    tamper: (statement) =>
      tamperIn(schema, async (client) => {
        await client.query(`set session_replication_role = replica; ${statement}`)
      }),
    async holds(bytes) {
      for (const place of ['event.body', 'history.message', 'inbox.command']) {
        const [table, column] = place.split('.')
        const text = `select from ${schema}.${table} where strpos(${column}, $1) > 0 limit 1`
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
    piecesRead: () => piecesRead,
  }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('sessions in a ledger in Postgres', () => {
  it.each(Object.entries(sessionCases))('%s', async (_claim, keeps) => {
    await expect(keeps(bed())).resolves.toBeUndefined()
  })

  it('messages that are removed while a run that begins with them is appended are written anew', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const rows = Reflect.get<Connections, 'rows'>(Connections.prototype, 'rows')
    let known = 0
    vi.spyOn(Connections.prototype, 'rows').mockImplementation(async function (
      this: Connections,
      statement,
    ): Promise<never> {
      const isFirst = statement.text.startsWith('select digest from') && known++ === 0
      const names = statement.values[0] as readonly string[]
      return (isFirst ? names.map((digest) => ({ digest })) : await rows.call(this, statement)) as never
    })
    const [first, second] = await chat(ledger, 2)
    expect(known).toBe(2)
    const other = openLedger(schema)
    for (const runId of [first, second]) {
      expect(await eventsOf(other, runId!)).toEqual(await eventsOf(ledger, runId!))
    }
  })
})
