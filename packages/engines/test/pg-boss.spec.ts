import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { type Db, PgBoss, TestClock } from 'pg-boss'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { contractOf, type EngineHarness } from '@tallystick/engines/contract'
import type { EngineWorker, Wake } from '../src/engine.ts'
import { pgBossEngine, type PgBossEngineOptions } from '../src/pg-boss.ts'
import { runId, watchDrives } from './support/watched-drive.ts'

const server = inject('postgres')
const connectionString = 'connectionString' in server ? server.connectionString : ''
const second = 1_000
const queue = 'tallystick'
let schemas = 0

interface Bed {
  readonly clock: TestClock
  readonly boss: PgBoss
  readonly schema: string
  readonly wake: (runId: string, more?: Omit<Wake, 'runId'>, within?: unknown) => Promise<void>
  readonly work: (
    concurrency: number,
  ) => Promise<EngineWorker & Pick<ReturnType<typeof watchDrives>, 'next' | 'begun'>>
  /** The jobs of the queue that wait. */
  readonly waiting: () => ReturnType<PgBoss['findJobs']>
}

/** Time passes only by the clock of the test, for pg-boss as for Postgres. */
async function openBed(options: Omit<PgBossEngineOptions, 'boss'> = {}): Promise<Bed> {
  const schema = `pgboss_${process.pid}_${++schemas}`
  const clock = new TestClock()
  const boss = new PgBoss({ connectionString, schema, clock, max: 4, supervise: false, schedule: false })
  boss.on('error', () => undefined)
  await boss.start()
  onTestFinished(() => boss.stop({ graceful: false }))
  const engine = pgBossEngine({ boss, ...options })
  return {
    clock,
    boss,
    schema,
    wake: (id, more, within) => engine.wake({ runId: runId(id), ...more }, within),
    async work(concurrency) {
      const drives = watchDrives()
      return { ...drives, ...(await engine.work(drives.drive, { concurrency })) }
    },
    waiting: () => boss.findJobs(queue, { queued: true }),
  }
}

async function openClient(): Promise<Client> {
  const client = new Client({ connectionString })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** The time of the machine, as the contract needs it. */
const harness: EngineHarness = {
  timerMs: 1_000,
  capabilities: new Set(['exclusivePerKey', 'transactional', 'priorities', 'fairness']),
  async open() {
    const schema = `pgboss_${process.pid}_${++schemas}`
    const started: PgBoss[] = []
    const another = async () => {
      const boss = new PgBoss({ connectionString, schema, max: 4, schedule: false, useListenNotify: true })
      started.push(await boss.start())
      const polling = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }
      return pgBossEngine({ boss, workOptions: { ...polling, groupConcurrency: 3 } })
    }
    return {
      engine: await another(),
      another,
      async begin() {
        const client = await openClient()
        await client.query('BEGIN')
        const end = async (how: string): Promise<void> => void (await client.query(how))
        return { within: client, commit: () => end('COMMIT'), rollback: () => end('ROLLBACK') }
      },
      async close() {
        for (const boss of started) await boss.stop({ graceful: false })
      },
    }
  },
}

describe.skipIf(connectionString === '')('an engine on pg-boss keeps', () => {
  test.for(contractOf.engine(harness))('$promise', async ({ lacks, run }, { skip }) => {
    if (lacks !== undefined) skip(`it is not capable of ${lacks}`)
    await expect(run()).resolves.toBeUndefined()
  })
})

describe.skipIf(connectionString === '')('the engine on pg-boss', () => {
  test('keeps how a run begins, and the highest priority, when wakes merge', async () => {
    const { wake, waiting } = await openBed()
    const start = { agent: 'clerk', input: 'Hello' }
    await wake('a', { priority: 5, start })
    await wake('a', { priority: 1 })
    expect(await waiting()).toMatchObject([{ priority: 5, data: { runId: 'a', start } }])
  })

  test('delivers a wake again whose drive was rejected, later each time', async () => {
    const { wake, work, clock, waiting } = await openBed()
    await wake('a')
    const worker = await work(1)
    const delays: number[] = []
    for (let round = 0; round < 6; round++) {
      const call = await worker.next()
      call.fail()
      while ((await waiting()).length === 0) await clock.tick(0)
      const [job] = await waiting()
      delays.push(job!.startAfter.getTime() - clock.now())
      await clock.tick(70 * second)
    }
    expect(delays[0]).toBeLessThanOrEqual(2 * second)
    expect(delays[5]).toBeGreaterThan(10 * second)
    expect(Math.max(...delays)).toBeLessThanOrEqual(60 * second)
  })

  test('a new wake does not wait for the end of a backoff', async () => {
    const { wake, work, clock, waiting } = await openBed({
      queueOptions: { retryDelay: 3_600, retryDelayMax: 3_600 },
    })
    await wake('a')
    const worker = await work(1)
    ;(await worker.next()).fail()
    while ((await waiting()).length === 0) await clock.tick(0)
    await wake('a')
    await clock.tick(5 * second)
    expect(worker.begun).toEqual(['a', 'a'])
  })

  test('drives runs of one key one at a time, and others beside them', async () => {
    const { wake, work, clock } = await openBed()
    for (const id of ['a', 'b', 'c']) await wake(id, { key: 'session' })
    await wake('other')
    const worker = await work(4)
    const calls = [await worker.next(), await worker.next()]
    await clock.tick(10 * second)
    expect(worker.begun).toHaveLength(2)
    expect(worker.begun).toContain('other')
    for (const call of calls) call.end()
    const next = await worker.next()
    await clock.tick(10 * second)
    expect(worker.begun).toHaveLength(3)
    next.end()
    await worker.next()
    expect(worker.begun.toSorted()).toEqual(['a', 'b', 'c', 'other'])
  })

  test('a wake waits for one of another transaction, and merges with it', async () => {
    const { wake, waiting } = await openBed()
    const [first, second] = [await openClient(), await openClient()]
    await first.query('BEGIN')
    await wake('a', {}, first)
    await second.query('BEGIN')
    const ended: string[] = []
    const later = wake('a', {}, second).then(() => ended.push('a'))
    const locks = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while (ended.length === 0 && (await first.query(locks)).rows.length === 0);
    await first.query('COMMIT')
    await later
    await second.query('COMMIT')
    expect(await waiting()).toHaveLength(1)
  })

  test('a wake whose job is taken while it merges gets a job of its own', async () => {
    const { wake, boss, waiting } = await openBed()
    await wake('a')
    const client = await openClient()
    const taken: Wake[] = []
    const executeSql: Db['executeSql'] = async (text, values) => {
      if (text.includes('UPDATE')) taken.push(...(await boss.fetch<Wake>(queue)).map((job) => job.data))
      return await client.query(text, values)
    }
    await wake('a', {}, { executeSql })
    expect(taken).toEqual([{ runId: 'a' }])
    expect(await waiting()).toHaveLength(1)
  })

  test('a wake that waits is not taken while a transaction changes it', async () => {
    const { wake, work, clock } = await openBed()
    await wake('a')
    const client = await openClient()
    await client.query('BEGIN')
    await wake('a', {}, client)
    const worker = await work(1)
    await clock.tick(600 * second)
    expect(worker.begun).toEqual([])
    await client.query('COMMIT')
    await clock.tick(10 * second)
    expect(worker.begun).toEqual(['a'])
  })

  test('a worker that stops gives back what has not ended, without a counted failure', async () => {
    const { wake, work, waiting } = await openBed()
    await wake('slow')
    await wake('quick')
    const worker = await work(2)
    const calls = [await worker.next(), await worker.next()]
    const quick = calls.find((call) => call.wake.runId === 'quick')!
    const stopped = worker.stop(0)
    expect(calls.every((call) => call.signal.aborted)).toBe(true)
    quick.end()
    await stopped
    expect(await waiting()).toMatchObject([{ data: { runId: 'slow' }, retryCount: 0, state: 'created' }])
    const later = await work(1)
    expect((await later.next()).wake.runId).toBe('slow')
  })

  test('a drive that is rejected because its worker stops counts no failure', async () => {
    const { wake, work, waiting } = await openBed()
    await wake('a')
    const worker = await work(1)
    const call = await worker.next()
    const stopped = worker.stop(3_600 * second)
    call.fail()
    await stopped
    expect(await waiting()).toMatchObject([{ retryCount: 0, state: 'created' }])
  })

  test('the wake of a worker that was killed goes to another one', async () => {
    const { wake, work, clock, boss, schema } = await openBed()
    await wake('a')
    const script = fileURLToPath(new URL('support/pg-boss-child.ts', import.meta.url))
    const child = spawn(process.execPath, [script, connectionString, schema], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [said] = (await once(child.stdout, 'data')) as [Buffer]
    expect(String(said)).toBe('a\n')
    child.kill('SIGKILL')
    await once(child, 'exit')
    const worker = await work(1)
    await clock.tick(5 * second)
    expect(worker.begun).toEqual([])
    // Time for a slow machine: the child's heartbeats had the machine's time.
    await clock.tick(600 * second)
    await boss.supervise(queue)
    await clock.tick(5 * second)
    expect(worker.begun).toEqual(['a'])
  })

  test('a drive of hours is not delivered again while its worker lives', async () => {
    const polling = { pollingIntervalSeconds: 900, notifyPollingIntervalSeconds: 900 }
    const { wake, work, clock, boss } = await openBed({ workOptions: polling })
    await wake('a')
    const worker = await work(2)
    const call = await worker.next()
    for (let minutes = 0; minutes < 45; minutes += 15) {
      await clock.tick(900 * second)
      await boss.supervise(queue)
    }
    expect(worker.begun).toEqual(['a'])
    expect(call.signal.aborted).toBe(false)
  })

  test('refuses a queue that is not its own', async () => {
    const { boss, wake } = await openBed()
    await boss.createQueue(queue)
    await expect(wake('a')).rejects.toThrow('has the policy "standard"')
  })
})
