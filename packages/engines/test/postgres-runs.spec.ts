import { pgBossEngine } from '@tallystick/engines/pg-boss'
import { pollingEngine } from '@tallystick/engines/polling'
import { PgBoss } from 'pg-boss'
import { describe, inject } from 'vitest'
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
