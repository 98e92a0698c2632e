import { pollingEngine } from '@tallystick/engines/polling'
import { bullmqEngine } from '@tallystick/engines/bullmq'
import { Queue } from 'bullmq'
import { afterAll, beforeAll, describe } from 'vitest'
import { openQueue, queueEngine } from './queue-engine.ts'
import { lacksRedis, startRedis, type RedisProcess } from './support/redis-process.ts'
import { playRuns, sqliteSite } from './support/run-sites.ts'

describe('runs on SQLite, driven by an engine in memory:', () => {
  playRuns({
    timerMs: 200,
    open() {
      const queue = openQueue()
      return sqliteSite(() => ({ engine: queueEngine(queue) }))
    },
  })
})

describe('runs on SQLite, driven by polling:', () => {
  playRuns({
    timerMs: 400,
    lacks: ['start'],
    open: () =>
      sqliteSite((ledger) => ({ engine: pollingEngine({ ledger, everyMs: 100, report: () => undefined }) })),
  })
})

describe.skipIf(lacksRedis)('runs on SQLite, driven by BullMQ:', () => {
  let redis: RedisProcess
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis[Symbol.asyncDispose]())

  playRuns({
    timerMs: 400,
    open: () =>
      sqliteSite((_ledger, name) => {
        const queue = new Queue(name, { connection: { port: redis.port } })
        queue.on('error', () => undefined)
        const workerOptions = { settings: { backoffStrategy: () => 20 } }
        return { engine: bullmqEngine({ queue, workerOptions }), close: () => queue.close() }
      }),
  })
})
