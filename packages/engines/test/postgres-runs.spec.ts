import { createRuntime, defineAgent } from '@tallystick/core'
import { createClient } from '@tallystick/engines'
import { pgBossEngine } from '@tallystick/engines/pg-boss'
import { pollingEngine } from '@tallystick/engines/polling'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { scriptedModel } from '@tallystick/testkit'
import { Pool } from 'pg'
import { PgBoss } from 'pg-boss'
import { describe, expect, inject, it } from 'vitest'
import { playRuns, postgresSite } from './support/run-sites.ts'

const server = inject('postgres')
const connectionString = 'connectionString' in server ? server.connectionString : ''

describe.skipIf(connectionString === '')('runs on Postgres, driven by polling:', () => {
  playRuns({
    timerMs: 400,
    lacks: ['start'],
    open: () =>
      postgresSite(connectionString, (ledger) => ({
        engine: pollingEngine({ ledger, everyMs: 100, report: () => undefined }),
      })),
  })
})

describe.skipIf(connectionString === '')('runs on Postgres, driven by pg-boss:', () => {
  playRuns({
    open: () =>
      postgresSite(connectionString, async (_ledger, name) => {
        const boss = new PgBoss({
          ...{ connectionString, schema: name.replaceAll('-', '_').slice(0, 50), max: 4 },
          ...{ useListenNotify: true, schedule: false },
        })
        boss.on('error', () => undefined)
        await boss.start()
        const workOptions = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 }
        const engine = pgBossEngine({ boss, workOptions })
        return { engine, close: () => boss.stop({ graceful: false }) }
      }),
  })
})

describe.skipIf(connectionString === '')('a command and its job', () => {
  it('are one commit on the pool of the application, or neither is there', async () => {
    const pool = new Pool({ connectionString, max: 4 })
    const ledger = postgresLedger({ pool, schema: 'one_commit' })
    const boss = new PgBoss({ connectionString, schema: 'one_commit_jobs', max: 2, schedule: false })
    await boss.start()
    try {
      const agent = defineAgent({ name: 'agent', instructions: 'Work.', model: scriptedModel([]) })
      const runtime = createRuntime({ ledger, agents: [agent] })
      const client = createClient({ runtime, engine: pgBossEngine({ boss }) })
      const runId = await runtime.enqueue(agent, 'Work.')
      const found = async () => ({
        commands: (await ledger.inbox(runId)).length,
        jobs: (await boss.findJobs('tallystick', { data: { runId } })).length,
      })
      for (const [end, count] of [
        ['rollback', 0],
        ['commit', 1],
      ] as const) {
        const within = await pool.connect()
        await within.query('begin')
        expect(await client.post(runId, { type: 'cancel' }, { key: 'a', within })).toEqual({ accepted: true })
        expect(await found()).toEqual({ commands: 0, jobs: 0 })
        await within.query(end)
        within.release()
        expect(await found()).toEqual({ commands: count, jobs: count })
      }
    } finally {
      await boss.stop({ graceful: false })
      await ledger.close()
      await pool.end()
    }
  })
})
