import { memoryLedger, type Ledger } from '@tallystick/core'
import { importEvents, verifyLedger, verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished, afterEach, vi } from 'vitest'
import { Connections } from '../src/postgres/connections.ts'
import { badInputCases } from './support/bad-input-cases.ts'
import { changeOf, digestedTables, guards, recordLargeRun } from './support/bad-input-columns.ts'
import { closingCases } from './support/closing-cases.ts'
import { cutOffCases } from './support/cut-off-cases.ts'
import { digestsOnlyCases } from './support/digests-only-cases.ts'
import { linesOfLedger } from './support/exported.ts'
import { unheard } from './support/joining-cases.ts'
import { demandCancelled } from './support/left-child.ts'
import { onAsk } from './support/lent-store.ts'
import { freshSchema, hasPostgres, openLedger, rowsOf } from './support/postgres-database.ts'
import { tamperIn, allVerifiedIn } from './support/postgres-recorded.ts'
import { recordRun } from './support/record-run.ts'
import { type RemovalBed, eventsOf } from './support/removal-bed.ts'
import { removalCases } from './support/removal-cases.ts'
import { sealingCases } from './support/sealing-cases.ts'
import { chat, countedRows, keptTables, type SessionBed } from './support/session-bed.ts'
import { sessionCases } from './support/session-cases.ts'
import { temporaryFile } from './support/temporary-folder.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('what comes in bad into a ledger in Postgres', () => {
  it.each(Object.entries(badInputCases))('%s', async (_claim, keeps) => {
    await expect(keeps({ open: () => openLedger(freshSchema()) })).resolves.toBeUndefined()
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('closing a ledger in Postgres whose runs are driven', () => {
  it.each(Object.entries(closingCases))('%s', async (_claim, keeps) => {
    const schema = freshSchema()
    await expect(keeps(() => openLedger(schema))).resolves.toBeUndefined()
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('closing a ledger in Postgres that is followed', () => {
  it.each(Object.entries(cutOffCases))('%s', async (_claim, keeps) => {
    const schema = freshSchema()
    await expect(keeps(() => openLedger(schema))).resolves.toBeUndefined()
  })
})

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

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('input that joins a run of another process', () => {
  it('is heard, however close to the end of the run it comes', async () => {
    const schema = freshSchema()
    expect(await unheard(openLedger(schema), openLedger(schema), 25)).toEqual([])
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a child run that its parent had to leave, in Postgres', () => {
  it('is cancelled, whichever call of the ledger is late', async () => {
    const schema = freshSchema()
    await expect(demandCancelled(() => openLedger(schema), [1])).resolves.toBeUndefined()
  })
})

async function largeSchema(): Promise<string> {
  const schema = freshSchema()
  const ledger = openLedger(schema)
  await recordLargeRun(ledger)
  await ledger.close()
  return schema
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('the tables of a ledger in Postgres', () => {
  it('are all known by what holds them to what was written', async () => {
    const rows = await rowsOf<{ name: string }>(
      `select table_name::text as name from information_schema.tables
       where table_schema = $1 and table_type = 'BASE TABLE'`,
      [await largeSchema()],
    )
    const names = rows.map(({ name }) => name)
    expect(names.filter((name) => !Object.hasOwn(guards, name))).toEqual([])
    expect(names).toContain('event')
  })

  it('have every column of messages held to their digests', async () => {
    for (const table of digestedTables) {
      const columns = await rowsOf<{ name: string; type: string }>(
        `select column_name::text as name, data_type::text as type from information_schema.columns
         where table_schema = $1 and table_name = $2`,
        [await largeSchema(), table],
      )
      expect(columns.length).toBeGreaterThan(1)
      for (const { name, type } of columns) {
        const schema = await largeSchema()
        await tamperIn(schema, async (client) => {
          // What refers to what is held by triggers of Postgres itself.
          await client.query('set session_replication_role = replica')
          const { rowCount } = await client.query(changeOf(table, name, type, `convert_to('x', 'UTF8')`))
          expect(rowCount).toBeGreaterThan(0)
        })
        const { store } = await allVerifiedIn(schema)
        expect({ table, name, ok: store.ok }).toEqual({ table, name, ok: false })
      }
    }
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('runs that move from a SQLite file to Postgres and back', () => {
  async function move(from: Ledger, to: Ledger): Promise<void> {
    const lines = await linesOfLedger(from)
    expect(await importEvents(to, lines)).toMatchObject({ events: lines.length, present: 0 })
    expect(await importEvents(to, lines)).toMatchObject({ events: 0, present: lines.length })
    expect(await linesOfLedger(to)).toEqual(lines)
    expect(await Array.fromAsync(to.runs())).toEqual(await Array.fromAsync(from.runs()))
    expect(await Array.fromAsync(verifyLedger(to), ({ ok }) => ok)).not.toContain(false)
  }

  it('are the same there, byte for byte, with the same writers, and verify', async () => {
    const origin = sqliteLedger(temporaryFile())
    const back = sqliteLedger(temporaryFile())
    onTestFinished(async () => {
      await origin.close()
      await back.close()
    })
    await recordRun(origin, 1)
    // Random runs bring crashes, and so writers after the first.
    for (const [index, program] of fc.sample(randomProgram, { numRuns: 5, seed: 4 }).entries()) {
      const memory = memoryLedger()
      await playProgram({ ...program, randomness: 100 + index }, { ledger: memory })
      await importEvents(origin, await linesOfLedger(memory))
    }
    const epochs = (await Array.fromAsync(origin.runs())).map(({ head }) => head.epoch)
    expect(Math.max(...epochs)).toBeGreaterThan(1)
    const postgres = openLedger(freshSchema())
    await move(origin, postgres)
    await move(postgres, back)
    expect(await linesOfLedger(back)).toEqual(await linesOfLedger(origin))
  })

  it('are noted one after the other where several processes import at once', async () => {
    const schema = freshSchema()
    const parts = await Promise.all(
      [0, 1, 2].map(async (part) => {
        const memory = memoryLedger()
        for (let index = 1; index <= 4; index++) await recordRun(memory, part * 4 + index)
        return await linesOfLedger(memory)
      }),
    )
    await Promise.all(parts.map((lines, part) => importEvents(openLedger(schema), lines, { by: `${part}` })))
    const ledger = openLedger(schema)
    expect(await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)).not.toContain(false)
    const runs = await Array.fromAsync(ledger.runs())
    const notes = await Promise.all(runs.map(async ({ runId }) => (await verifyRun(ledger, runId)).imported))
    const by = notes.map((note) => note?.by ?? '')
    expect(by.toSorted()).toEqual(['0000', '1111', '2222'].flatMap((four) => four.split('')))
  })
})

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('sessions in a ledger in Postgres', () => {
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
