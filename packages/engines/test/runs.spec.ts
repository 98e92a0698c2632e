import { pollingEngine } from '@tallystick/engines/polling'
import { bullmqEngine } from '@tallystick/engines/bullmq'
import { restateEngine } from '@tallystick/engines/restate'
import { endpoint } from '@restatedev/restate-sdk'
import { connect } from '@restatedev/restate-sdk-clients'
import { Queue } from 'bullmq'
import { afterAll, beforeAll, describe } from 'vitest'
import { openQueue, queueEngine } from './queue-engine.ts'
import { findFreePort } from '../../../scripts/testing/free-port.ts'
import { lacksRedis, startRedis, type RedisProcess } from './support/redis-process.ts'
import { findRestate, type RestateProcess, startRestate } from './support/restate-process.ts'
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

const restateProgram = findRestate()

describe.skipIf(restateProgram === undefined)('runs on SQLite, driven by Restate:', () => {
  let restate: RestateProcess
  beforeAll(async () => {
    restate = await startRestate(restateProgram!)
  })
  afterAll(() => restate.end())

  playRuns({
    timerMs: 400,
    async open() {
      // The workers of a site share its address.
      const listen = { port: await findFreePort(), reusePort: true }
      return await sqliteSite(async (_ledger, name) => {
        const engine = restateEngine({
          ingress: connect({ url: restate.ingress }),
          listen,
          register: { admin: restate.admin },
          endpoint: () => endpoint().setLogger(() => undefined),
          services: { name },
        })
        // Restate takes wakes once it knows the services.
        const worker = await engine.work(() => Promise.reject(new Error('It only registers.')), {
          concurrency: 1,
        })
        await worker.stop(0)
        return { engine }
      })
    },
  })
})
