import { createRuntime, defineAgent, type Ledger, type RunId } from '@tallystick/core'
import { verifyLedger } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sampleFacts, sampleRunId, scriptedModel, stampFacts } from '@tallystick/testkit'
import { Pool, type PoolClient, type PoolConfig } from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  connectionString,
  freshSchema,
  hasPostgres,
  openLedger,
  rowsOf,
} from './support/postgres-database.ts'

const run = sampleRunId(1)

function poolOf(config: PoolConfig = { connectionString }): Pool {
  const pool = new Pool(config)
  onTestFinished(() => pool.end())
  return pool
}

const command = (key: string) => ({ key, command: { type: 'steer', text: key } as never, at: 5 })

async function startRun(ledger: Ledger, runId: RunId = run): Promise<void> {
  const started = stampFacts(runId, [sampleFacts(runId).run_started])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, started, { durability: 'barrier' })
}

async function inTransaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    return await work(client)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** A ledger with a run, and a pool of the same database. */
async function withRun() {
  const pool = poolOf()
  const schema = freshSchema()
  const ledger = openLedger(schema, { connectionString: undefined, pool })
  await startRun(ledger)
  return { pool, schema, ledger }
}

// Only a platform without Postgres leaves them out, and the run says so.
describe.skipIf(!hasPostgres)('a ledger on a pool of the application', () => {
  it('drives runs, hints at what others write, verifies, and leaves the pool open when it closes', async () => {
    const { hostname: host, port, pathname, username: user, password } = new URL(connectionString)
    const pool = poolOf({ host, port: Number(port), database: pathname.slice(1), user, password, max: 2 })
    const schema = freshSchema()
    const ledger = postgresLedger({ pool, schema })
    const model = scriptedModel([{ text: 'Well.' }])
    const agent = defineAgent({ name: 'a', instructions: 'Answer.', model })
    expect(await createRuntime({ ledger, agents: [agent] }).run(agent, 'Well?').result).toMatchObject({
      text: 'Well.',
    })
    for await (const { ok } of verifyLedger(ledger)) expect(ok).toBe(true)
    const other = openLedger(schema)
    const hinted = new Promise<void>((resolve) => {
      let hints = 0
      // The first says that it listens.
      ledger.changes(run).subscribe(() => ++hints === 2 && resolve())
    })
    await startRun(other)
    await hinted
    await ledger.close()
    await expect(ledger.head(run)).rejects.toMatchObject({ code: 'ledger_unavailable' })
    const { rows } = await pool.query('select 1::int8 as one, current_setting($1) as seqscan', [
      'enable_seqscan',
    ])
    expect(rows).toEqual([{ one: '1', seqscan: 'on' }])
  })

  it('survives the loss of a connection that it has borrowed', async () => {
    const { pool, schema, ledger } = await withRun()
    pool.on('error', () => undefined)
    await inTransaction(poolOf(), async (client) => {
      await client.query('begin')
      await client.query(`lock table ${schema}.run in access exclusive mode`)
      const head = ledger.head(run)
      const waiting = `from pg_stat_activity where wait_event_type = 'Lock' and strpos(query, '${schema}') > 0`
      while ((await rowsOf(`select pg_terminate_backend(pid) ${waiting}`)).length === 0);
      await client.query('rollback')
      expect(await head).toEqual({ seq: 1, epoch: 1 })
    })
  })
})

describe.skipIf(!hasPostgres)('a put within a transaction', () => {
  it('is there, and hinted at, with the commit, and gone with a rollback', async () => {
    const { pool, schema, ledger } = await withRun()
    const reader = openLedger(schema)
    await ledger.acquire(run, { holder: 'a', forMs: 60_000 })
    await ledger.release(run, 'a', {})
    const listening = Promise.withResolvers<void>()
    const hinted = Promise.withResolvers<void>()
    let isCommitted = false
    reader.changes(run, 'inbox').subscribe(() => (isCommitted ? hinted : listening).resolve())
    await listening.promise
    await inTransaction(pool, async (client) => {
      await client.query('begin')
      expect(await ledger.put(run, command('gone'), { within: client })).toBe(true)
      await client.query('rollback')
      expect(await ledger.inbox(run)).toEqual([])
      expect(await Array.fromAsync(ledger.due({ before: Infinity }))).toEqual([])
      await client.query('begin')
      await client.query(`create table ${schema}.job as select 'drive'::text as what`)
      expect(await ledger.put(run, command('one'), { within: client })).toBe(true)
      expect(await ledger.put(run, command('one'), { within: client })).toBe(false)
      expect(await reader.inbox(run)).toEqual([])
      isCommitted = true
      await client.query('commit')
    })
    await hinted.promise
    expect(await reader.inbox(run)).toEqual([command('one')])
    expect(await rowsOf(`select what from ${schema}.job`)).toEqual([{ what: 'drive' }])
    expect(await Array.fromAsync(reader.due({ before: Infinity }))).toEqual([{ runId: run, dueAt: 0 }])
  })

  it('is refused on its own where the run is unknown or has ended: the transaction goes on', async () => {
    const { pool, schema, ledger } = await withRun()
    const ended = sampleRunId(2)
    const facts = sampleFacts(ended)
    const events = stampFacts(ended, [facts.run_started, facts.run_finished])
    await ledger.append(ended, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
    await inTransaction(pool, async (client) => {
      await client.query('begin')
      const put = (runId: RunId) => ledger.put(runId, command('k'), { within: client })
      await expect(put(sampleRunId(9))).rejects.toMatchObject({ code: 'run_not_found' })
      await expect(put(ended)).rejects.toMatchObject({ code: 'ledger_conflict', kind: 'ended' })
      expect(await put(run)).toBe(true)
      await client.query('commit')
    })
    expect(await ledger.inbox(run)).toEqual([command('k')])
    expect(await rowsOf(`select key from ${schema}.inbox`)).toEqual([{ key: 'k' }])
  })

  it('leaves no savepoint behind, whether it is taken or refused', async () => {
    const { pool, schema, ledger } = await withRun()
    await inTransaction(pool, async (client) => {
      const countJobs = async () => (await client.query(`select what from ${schema}.job`)).rows.length
      await client.query('begin')
      await client.query(`create table ${schema}.job (what text)`)
      // A savepoint of the application, which happens to have the same name.
      await client.query('savepoint tallystick')
      await client.query(`insert into ${schema}.job values ('drive')`)
      const unknown = ledger.put(sampleRunId(9), command('k'), { within: client })
      await expect(unknown).rejects.toMatchObject({ code: 'run_not_found' })
      const ended = sampleRunId(2)
      const facts = sampleFacts(ended)
      const events = stampFacts(ended, [facts.run_started, facts.run_finished])
      await ledger.append(ended, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
      const late = ledger.put(ended, command('k'), { within: client })
      await expect(late).rejects.toMatchObject({ kind: 'ended' })
      expect(await ledger.put(run, command('k'), { within: client })).toBe(true)
      expect(await countJobs()).toBe(1)
      await client.query('rollback to savepoint tallystick')
      expect(await countJobs()).toBe(0)
      await client.query('commit')
    })
    expect(await ledger.inbox(run)).toEqual([])
  })

  it('is refused without a transaction, on another database, and on what is no client', async () => {
    const { pool, schema, ledger } = await withRun()
    const put = (within: unknown) => ledger.put(run, command('k'), { within: within as never })
    await inTransaction(pool, async (client) => {
      await expect(put(client)).rejects.toThrow('no transaction is open')
      await client.query('begin isolation level repeatable read')
      await client.query('select 1')
      const late = sampleRunId(3)
      await startRun(ledger, late)
      await expect(ledger.put(late, command('k'), { within: client })).rejects.toThrow('does not see the run')
    })
    const name = `other_${schema}`
    await rowsOf(`create database ${name}`)
    const elsewhere = poolOf({ connectionString: connectionString.replace(/\/[^/]*$/, `/${name}`) })
    await inTransaction(elsewhere, async (client) => {
      await client.query('begin')
      await expect(put(client)).rejects.toThrow('another database')
      // It goes on.
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    })
    await expect(put({})).rejects.toThrow('a client of pg')
    expect(await ledger.inbox(run)).toEqual([])
  })
})
