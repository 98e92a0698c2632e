// A worker of the demo on pg-boss, until it is killed, told to stop, or its parent is gone. Arguments: the connection string of
// Postgres, the folder of the demo's files, and the model.
import { createRuntime } from '@tallystick/core'
import { startWorker } from '@tallystick/engines'
import { pgBossEngine } from '@tallystick/engines/pg-boss'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { openBoss } from './open-boss.ts'
import { openDemo } from './open-demo.ts'

const [connectionString = '', ledgerPath = '', modelId = ''] = process.argv.slice(2)
const demo = await openDemo({ ledgerPath, modelId, paceMs: 12 })
const ledger = postgresLedger({ connectionString })
const boss = await openBoss(connectionString)
const runtime = createRuntime({ ledger, agents: [demo.agent] })
const engine = pgBossEngine({ boss, queueOptions: { heartbeatSeconds: 10 } })
const worker = await startWorker({ runtime, engine })
process.send?.({ status: 'ready' })
process.on('disconnect', () => process.exit())

async function stop(): Promise<void> {
  await worker.stop(5_000)
  await boss.stop()
  await ledger.close()
  await demo.close()
  process.exit()
}

process.once('SIGTERM', () => void stop())
