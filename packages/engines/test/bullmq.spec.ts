import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { contractOf, type EngineHarness } from '@tallystick/engines/contract'
import { Queue } from 'bullmq'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { bullmqEngine, type BullmqEngineOptions } from '../src/bullmq.ts'
import type { Engine, EngineWorker, Wake } from '../src/engine.ts'
import { lacksRedis, startRedis, type RedisProcess } from './support/redis-process.ts'
import { runId, watchDrives } from './support/watched-drive.ts'

const second = 1_000
const day = 86_400 * second
let queues = 0

/** A time by the clock of the process, which is BullMQ's only one. */
const inMs = (ms: number): number => Math.ceil(performance.timeOrigin + performance.now() + ms)
const until = (check: () => boolean | Promise<boolean>): Promise<boolean> =>
  vi.waitUntil(check, { timeout: 60 * second, interval: 5 })

type RedisClient = ReturnType<Queue['getBackend']>['client']

interface Bed {
  readonly queue: Queue
  readonly wake: (runId: string, more?: Omit<Wake, 'runId'>) => Promise<void>
  readonly work: (
    concurrency: number,
    options?: BullmqEngineOptions['workerOptions'],
  ) => Promise<EngineWorker & Pick<ReturnType<typeof watchDrives>, 'next' | 'begun'>>
  /** Resolves when the queue has had nothing to do, now or at a time. */
  readonly untilEmpty: () => Promise<unknown>
}

function openBed({ port }: RedisProcess): Bed {
  const queue = new Queue(`tallystick-${++queues}`, { connection: { port, maxRetriesPerRequest: 1 } })
  queue.on('error', () => undefined)
  onTestFinished(() => queue.close())
  return {
    queue,
    wake: (id, more) => bullmqEngine({ queue }).wake({ runId: runId(id), ...more }),
    async work(concurrency, given) {
      const drives = watchDrives()
      const workerOptions = { ...given, settings: { backoffStrategy: () => 10, ...given?.settings } }
      const worker = await bullmqEngine({ queue, workerOptions }).work(drives.drive, { concurrency })
      onTestFinished(() => worker.stop(0))
      return { ...drives, ...worker }
    },
    untilEmpty: () =>
      until(async () => Object.values(await queue.getJobCounts()).every((count) => count === 0)),
  }
}

let redis: RedisProcess
beforeAll(async () => {
  if (!lacksRedis) redis = await startRedis()
})
afterAll(() => redis?.[Symbol.asyncDispose]())

const harness: EngineHarness = {
  capabilities: new Set(['priorities', 'rateLimits']),
  timerMs: 200,
  async open() {
    const connection = { port: redis.port }
    const queues: Queue[] = []
    const name = `tallystick-contract-${randomUUID()}`
    const another = (): Promise<Engine> => {
      const queue = new Queue(name, { connection })
      queues.push(queue)
      const workerOptions = { settings: { backoffStrategy: () => 10 } }
      return Promise.resolve(bullmqEngine({ queue, workerOptions }))
    }
    const close = async (): Promise<void> => {
      for (const queue of queues) await queue.close()
    }
    return { engine: await another(), another, close }
  },
}

describe.skipIf(lacksRedis)('the engine on BullMQ keeps', () => {
  test.for(contractOf.engine(harness))('$promise', async ({ lacks, run }, { skip }) => {
    if (lacks !== undefined) skip(`the engine is not capable of ${lacks}`)
    await expect(run()).resolves.toBeUndefined()
  })
})

describe.skipIf(lacksRedis)('the engine on BullMQ', () => {
  test('merges wakes of one moment, and drives the run once', async () => {
    const { wake, work, untilEmpty } = openBed(redis)
    await Promise.all(Array.from({ length: 20 }, () => wake('a')))
    const worker = await work(4)
    const call = await worker.next()
    call.end()
    await untilEmpty()
    expect(worker.begun).toEqual(['a'])
  })

  test('merges times to come, in any order, into the earliest', async () => {
    const { wake, work } = openBed(redis)
    const at = inMs(50)
    await Promise.all([at + day, at + 2 * day, at].map((time) => wake('a', { at: time })))
    await Promise.all([at, at + 3 * day].map((time) => wake('b', { at: time })))
    const worker = await work(2)
    const [first, second] = [await worker.next(), await worker.next()]
    expect(inMs(0)).toBeGreaterThanOrEqual(at)
    for (const call of [first, second]) call.end()
    await until(() => worker.begun.length === 2)
    expect([first.wake.runId, second.wake.runId].toSorted()).toEqual(['a', 'b'])
  })

  test('stops while Redis is slow to say what a drive that begins needs, and gives its wake back', async () => {
    const { queue, wake, work } = openBed(redis)
    await wake('a')
    const { promise: client, resolve: answer } = Promise.withResolvers<Awaited<RedisClient>>()
    const backend = queue.getBackend()
    const asked = vi
      .spyOn(queue, 'getBackend')
      .mockReturnValue(Object.create(backend, { client: { value: client } }))
    const worker = await work(1)
    await until(() => asked.mock.calls.length > 0)
    const stopped = worker.stop(0)
    let looks = 0
    await until(() => ++looks > 5)
    answer(await backend.client)
    await stopped
    asked.mockRestore()
    expect(worker.begun).toEqual([])
    const next = await work(1)
    const call = await next.next()
    call.end()
  })

  test('an earlier time takes the place of a later one, and a drive removes it', async () => {
    const { queue, wake, work, untilEmpty } = openBed(redis)
    const at = inMs(day)
    await wake('a:1', { at: at + 1 })
    await wake('a:1', { at: at + 2 })
    await wake('a:1', { at })
    expect((await queue.getDelayed()).map(({ id }) => id)).toEqual([`a%3A1@${at}`])
    await wake('a:1')
    const worker = await work(1)
    const call = await worker.next()
    call.end()
    await untilEmpty()
    expect(worker.begun).toEqual(['a:1'])
  })

  test('drives a run once more that was woken while it was driven, and not before that drive has ended', async () => {
    const { wake, work, queue, untilEmpty } = openBed(redis)
    await wake('a')
    const worker = await work(3)
    const first = await worker.next()
    await wake('a')
    await wake('a', { at: inMs(20) })
    // The time has come, and the run is still driven.
    await until(async () => (await queue.getDelayedCount()) === 0 && (await queue.getActiveCount()) === 1)
    expect(worker.begun).toEqual(['a'])
    first.end()
    const again = await worker.next()
    again.end()
    await untilEmpty()
    expect(worker.begun).toEqual(['a', 'a'])
  })

  test('keeps a time that is set while the run is driven', async () => {
    const { wake, work, queue } = openBed(redis)
    await wake('a')
    const worker = await work(1)
    const call = await worker.next()
    const at = inMs(day)
    await wake('a', { at })
    call.end()
    await until(async () => (await queue.getActiveCount()) === 0)
    expect((await queue.getDelayed()).map(({ id }) => id)).toEqual([`a@${at}`])
  })

  test('delivers a wake again whose drive was rejected, later each time, and without an end', async () => {
    const { wake, work, untilEmpty } = openBed(redis)
    const delays: number[] = []
    const worker = await work(1, {
      settings: {
        backoffStrategy: (attempt) => {
          delays.push(attempt)
          return 1
        },
      },
    })
    await wake('a')
    for (let attempt = 0; attempt < 20; attempt++) (await worker.next()).fail()
    const last = await worker.next()
    last.end()
    await untilEmpty()
    expect(delays).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  })

  test('a wake of now does not wait for the next attempt of a drive that was rejected', async () => {
    const { wake, work, queue, untilEmpty } = openBed(redis)
    const worker = await work(1, { settings: { backoffStrategy: () => day } })
    await wake('a')
    const first = await worker.next()
    first.fail()
    await until(async () => (await queue.getDelayedCount()) === 1)
    await wake('a')
    const again = await worker.next()
    again.end()
    await untilEmpty()
    expect(worker.begun).toEqual(['a', 'a'])
  })

  test('drives runs of a higher priority first', async () => {
    const { wake, work, untilEmpty } = openBed(redis)
    await wake('none')
    await wake('low', { priority: -1 })
    await wake('high', { priority: 10 })
    await wake('higher', { priority: 1e9 })
    await wake('none too')
    const worker = await work(1)
    for (let call = 0; call < 5; call++) (await worker.next()).end()
    await untilEmpty()
    expect(worker.begun).toEqual(['higher', 'high', 'none', 'none too', 'low'])
  })

  test('begins no more drives in a time than the limiter says, over all workers', async () => {
    const { wake, work, queue } = openBed(redis)
    for (const id of ['a', 'b', 'c']) await wake(id)
    const limited = { limiter: { max: 2, duration: day } }
    const [one, other] = [await work(2, limited), await work(2, limited)]
    await until(() => one.begun.length + other.begun.length === 2)
    await until(async () => (await queue.getRateLimitTtl(2)) > 0)
    expect(await queue.getPrioritizedCount()).toBe(1)
  })

  test('gives the run of a worker that was killed to another', async () => {
    const { wake, work, queue, untilEmpty } = openBed(redis)
    const script = fileURLToPath(new URL('support/bullmq-child.ts', import.meta.url))
    const child = spawn(process.execPath, [script, String(redis.port), queue.name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const ended = once(child, 'exit')
    await wake('a')
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    expect(line.toString()).toBe('a\n')
    child.kill('SIGKILL')
    await ended
    const worker = await work(1, { stalledInterval: 100 })
    const call = await worker.next()
    // A wake between the death and this drive counts for another.
    await wake('a')
    call.end()
    const again = await worker.next()
    again.end()
    await untilEmpty()
  })

  test('keeps a long drive from others, though its lock is short', async () => {
    const { wake, work, queue } = openBed(redis)
    const options = { lockDuration: 200, stalledInterval: 20 }
    await wake('a')
    const [one, other] = [await work(1, options), await work(1, options)]
    const call = await Promise.race([one.next(), other.next()])
    const lock = queue.toKey(`${(await queue.getActive())[0]?.id}:lock`)
    const client = await queue.getBackend().client
    const renewals = new Set<number>()
    await until(async () => {
      expect(await client.get(lock)).not.toBe(null)
      renewals.add(Math.floor(inMs(0) / 200))
      return renewals.size > 5
    })
    expect([...one.begun, ...other.begun]).toEqual(['a'])
    call.end()
  })

  test('after the grace it hands a drive to another worker, and counts no failure', async () => {
    const { wake, work, queue, untilEmpty } = openBed(redis)
    await wake('a')
    const worker = await work(1)
    const call = await worker.next()
    await worker.stop(0)
    const [job] = await queue.getPrioritized()
    expect(job?.attemptsMade).toBe(0)
    const other = await work(1)
    const again = await other.next()
    // Whatever the first drive does now concerns nobody.
    call.fail()
    again.end()
    await untilEmpty()
    expect(other.begun).toEqual(['a'])
  })

  test('hands over at once, also what a worker that stops is given late', async () => {
    for (let round = 0; round < 60; round++) {
      const { wake, work, queue } = openBed(redis)
      await wake('a')
      const worker = await work(5)
      await worker.next()
      await worker.stop(0)
      expect(worker.begun).toEqual(['a'])
      const other = await work(5)
      const again = await other.next()
      // What had to wait for the lock of the stopped worker to expire has stalled.
      expect((await queue.getActive()).map(({ stalledCounter }) => stalledCounter)).toEqual([0])
      again.end()
      await other.stop(60 * second)
    }
  })

  test('a drive that is rejected as its worker stops is no failure', async () => {
    const { wake, work, queue } = openBed(redis)
    await wake('a')
    const worker = await work(1)
    const call = await worker.next()
    const stopped = worker.stop(60 * second)
    call.fail()
    await stopped
    const [job] = await queue.getPrioritized()
    expect(job?.attemptsMade).toBe(0)
  })

  test('goes on after Redis has crashed, and loses no wake', async () => {
    const own = await startRedis()
    onTestFinished(() => own[Symbol.asyncDispose]())
    const { wake, work, untilEmpty } = openBed(own)
    const worker = await work(3, { stalledInterval: 100 })
    await wake('a')
    const call = await worker.next()
    await wake('later', { at: inMs(200) })
    await own.kill()
    await own.start()
    await wake('b')
    for (const other of [call, await worker.next(), await worker.next()]) other.end()
    await untilEmpty()
    expect(worker.begun.toSorted()).toEqual(['a', 'b', 'later'])
  })

  test('without Redis a wake is rejected, and a worker stops', async () => {
    const own = await startRedis()
    onTestFinished(() => own[Symbol.asyncDispose]())
    const { wake, work } = openBed(own)
    await wake('a')
    await wake('b')
    const worker = await work(2)
    const [call] = [await worker.next(), await worker.next()]
    await own.kill()
    await expect(wake('c')).rejects.toThrow('max retries per request')
    const stopped = worker.stop(0)
    call.end()
    await stopped
  })
})
