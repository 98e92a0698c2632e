import { LedgerUnavailableError, type Ledger } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { ledgerContract } from '@tallystick/testkit/contract'
import { describe, expect, it } from 'vitest'
import { chainFaults } from './support/postgres-chain.ts'
import { cutter } from './support/postgres-cutter.ts'
import { address, append, barrier, command, next, run, start } from './support/postgres-bed.ts'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
  withClient,
} from './support/postgres-database.ts'
import { perform } from '../src/store/database.ts'
import { storeOf } from './support/lent-store.ts'
import { restoreIn } from './support/postgres-recorded.ts'

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)(
  'a ledger whose connection is lost after a statement that was carried out',
  () => {
    async function cuttable(): Promise<Awaited<ReturnType<typeof cutter>> & { readonly ledger: Ledger }> {
      const line = await cutter(connectionString)
      const ledger = openLedger(freshSchema(), { connectionString: line.connectionString })
      await append(ledger, start)
      return { ...line, ledger }
    }

    it('recognises its append, and answers as if nothing had happened', async () => {
      const { ledger, cutAnswers, cuts } = await cuttable()
      cutAnswers('tallystick append', 1)
      expect(await append(ledger, next)).toEqual({ seq: 3, epoch: 1 })
      expect(cuts()).toBe(1)
      expect(await Array.fromAsync(ledger.read(run))).toEqual([...start, ...next])
      expect(await chainFaults(ledger, run)).toEqual([])
    })

    it('recognises every append of a group', async () => {
      const { ledger, cutAnswers, cuts } = await cuttable()
      const runIds = Array.from({ length: 30 }, (_, index) => sampleRunId(index + 10))
      // While the first of them are under way, the last ones queue up and go together.
      cutAnswers(runIds.at(-1) ?? '', 1)
      const heads = await Promise.all(
        runIds.map((runId) => append(ledger, stampFacts(runId, [sampleFacts(runId).run_started]), runId)),
      )
      expect(heads).toEqual(runIds.map(() => ({ seq: 1, epoch: 1 })))
      expect(cuts()).toBe(1)
      expect(await Array.fromAsync(ledger.runs())).toHaveLength(31)
    })

    it('answers that a command is new which it put itself, and that one is not which was there', async () => {
      const { ledger, cutAnswers } = await cuttable()
      cutAnswers('tallystick put', 1)
      expect(await ledger.put(run, { key: 'k1', command, at: 1 })).toBe(true)
      cutAnswers('tallystick put', 1)
      expect(await ledger.put(run, { key: 'k1', command, at: 2 })).toBe(false)
      expect(await ledger.inbox(run)).toEqual([{ key: 'k1', command, at: 1 }])
    })

    it('holds the run that it took over', async () => {
      const { ledger, cutAnswers } = await cuttable()
      cutAnswers('tallystick acquire', 1)
      const head = await ledger.acquire(run)
      const own = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1, epoch: head.epoch })
      expect(await append(ledger, own)).toEqual({ seq: 2, epoch: head.epoch })
    })

    it('says that it does not know whether it was carried out where the line is cut again, and asking again tells', async () => {
      const { ledger, cutAnswers } = await cuttable()
      cutAnswers('tallystick append', 2)
      const lost = append(ledger, next)
      await expect(lost).rejects.toThrow(LedgerUnavailableError)
      await expect(lost).rejects.toThrow(
        /Whether the last statement was carried out is not known.*is recognised/,
      )
      expect(await append(ledger, next)).toEqual({ seq: 3, epoch: 1 })
      expect(await Array.fromAsync(ledger.read(run))).toEqual([...start, ...next])
    })

    it('makes new connections where the server has ended all of them', async () => {
      const schema = freshSchema()
      const ledger = openLedger(schema, {
        connectionString: address((url) => url.searchParams.set('application_name', schema)),
      })
      await append(ledger, start)
      const ended = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1`
      expect((await rowsOf(ended, [schema])).length).toBeGreaterThan(0)
      expect(await append(ledger, next)).toEqual({ seq: 3, epoch: 1 })
    })

    it('changes what is derived, too, where the server ends the connection', async () => {
      const schema = freshSchema()
      const ledger = openLedger(schema, {
        connectionString: address((url) => url.searchParams.set('application_name', schema)),
      })
      await append(ledger, start)
      let tries = 0
      const { database } = storeOf(ledger)
      const answer = await database.change(function* (queries) {
        if (++tries === 1) {
          const { sql } = queries
          yield* perform(queries, sql`select pg_terminate_backend(pg_backend_pid())`)
        }
        return tries
      })
      expect(answer).toBe(2)
    })
  },
)

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a ledger among others that write', () => {
  // The cases in which appends meet; where the database runs every transaction as if it were alone.
  const meetings = ledgerContract.filter(({ promise }) =>
    /at once|in turns|two ledgers|another/.test(promise),
  )
  // oxlint-disable-next-line vitest/expect-expect -- a case rejects when its promise is broken
  it.each(meetings)(
    'keeps its promise where transactions are serializable: $promise',
    async ({ run: play }) => {
      const schema = freshSchema()
      const serializable = address((url) =>
        url.searchParams.set('options', '-c default_transaction_isolation=serializable'),
      )
      await play(() => Promise.resolve(openLedger(schema, { connectionString: serializable })))
    },
  )

  it('gives up what takes too long, says so, and writes when the way is free', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await append(ledger, start)
    await withClient(async (client) => {
      await client.query('begin')
      await client.query(`select from ${schema}.run for update`)
      const late = append(openLedger(schema, { statementTimeoutMs: 100 }), next)
      await expect(late).rejects.toThrow(LedgerUnavailableError)
      await expect(late).rejects.toThrow(/took too long, and nothing of it was written.*statementTimeoutMs/)
      await client.query('rollback')
    })
    expect(await append(ledger, next)).toEqual({ seq: 3, epoch: 1 })
  })

  it.each([
    ['an append', next],
    ['an append that only takes commands', []],
  ])('shuts out %s that had to wait for a take-over', async (_what, events) => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    await append(ledger, start)
    await ledger.put(run, { key: 'k1', command, at: 1 })
    await withClient(async (client) => {
      await client.query('begin')
      await client.query(`update ${schema}.run set epoch = epoch + 1`)
      const received: string[] = []
      const late = ledger
        .append(run, { expectedSeq: 1, epoch: 1 }, events, { ...barrier, consumedInboxKeys: ['k1'] })
        .then(() => 'written', String)
        .finally(() => received.push('an answer'))
      const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like $1`
      while (received.length === 0 && (await rowsOf(waiting, [`%"${schema}".run%`])).length === 0);
      await client.query('commit')
      expect(await late).toMatch(/^LedgerConflictError: .*held by the writer of epoch 2/)
    })
    expect(await ledger.inbox(run)).toEqual([{ key: 'k1', command, at: 1 }])
    expect(await Array.fromAsync(ledger.read(run))).toEqual(start)
  })

  it('chains its events to what is recorded, not to what it remembers, where the database went back in time', async () => {
    const schema = freshSchema()
    const [mine, theirs] = [openLedger(schema), openLedger(schema)]
    await append(mine, start)
    await withClient(async (client) => {
      for (const table of ['run', 'event']) {
        await client.query(`create table ${schema}.saved_${table} as table ${schema}.${table}`)
      }
    })
    await append(mine, next)
    await restoreIn(schema)
    const other = stampFacts(run, [sampleFacts(run).cancel_requested, sampleFacts(run).usage_updated], {
      afterSeq: 1,
    })
    await append(theirs, other)
    const more = stampFacts(run, [sampleFacts(run).guardrail_tripped], { afterSeq: 3 })
    expect(await append(mine, more)).toEqual({ seq: 4, epoch: 1 })
    expect(await Array.fromAsync(mine.read(run))).toEqual([...start, ...other, ...more])
    expect(await chainFaults(mine, run)).toEqual([])
  })

  it('lets no run wait for another that is locked', async () => {
    const schema = freshSchema()
    const ledger = openLedger(schema)
    const runIds = [1, 2, 3, 4, 5].map(sampleRunId)
    for (const runId of runIds)
      await append(ledger, stampFacts(runId, [sampleFacts(runId).run_started]), runId)
    await withClient(async (client) => {
      await client.query('begin')
      await client.query(`select from ${schema}.run where run_id = $1 for update`, [run])
      const held = append(ledger, next)
      for (const runId of runIds.slice(1)) {
        const own = stampFacts(runId, [sampleFacts(runId).cancel_requested], { afterSeq: 1 })
        expect(await append(ledger, own, runId)).toEqual({ seq: 2, epoch: 1 })
      }
      await client.query('rollback')
      expect(await held).toEqual({ seq: 3, epoch: 1 })
    })
  })
})
