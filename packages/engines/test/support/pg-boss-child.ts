// A worker that takes one wake, says so, and never ends its drive: it is there to be killed.
// Usage: pg-boss-child.ts CONNECTION SCHEMA
import { PgBoss } from 'pg-boss'
import { pgBossEngine } from '../../src/pg-boss.ts'

const [connectionString = '', schema = ''] = process.argv.slice(2)
const boss = new PgBoss({ connectionString, schema, max: 2 })
await boss.start()
await pgBossEngine({ boss }).work(
  (wake) => {
    process.stdout.write(`${wake.runId}\n`)
    return new Promise(() => undefined)
  },
  { concurrency: 1 },
)
