// A worker of the campaign: drives what the engine wakes until SIGTERM, and says each effect on stdout while its call is under way.
// Usage: campaign-worker.ts TASK, in JSON.
import { createRuntime } from '@tallystick/core'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import { createCampaignAgent } from './campaign-agent.ts'
import { openSite, type Task } from './campaign-site.ts'

const task = JSON.parse(process.argv[2] ?? '') as Task
const { ledger, engine, close } = await openSite(task)
const agent = createCampaignAgent(task.world, (what) => void process.stdout.write(`${what}\n`))
const runtime = createRuntime({ ledger, agents: [agent], host: { report: () => {} } })
// A server that is away for a moment is no reason to end.
process.on('unhandledRejection', (error) => void process.stderr.write(`${String(error)}\n`))
const workers = [await startWorker({ runtime, engine, concurrency: 10, parkMs: 1_000 })]
if (task.hasSweep) {
  const sweep = pollingEngine({ ledger, report: () => undefined })
  workers.push(await startWorker({ runtime, engine: sweep, concurrency: 2, parkMs: 1_000 }))
}
process.stdout.write('ready\n')
process.once('SIGTERM', () => {
  void Promise.all(workers.map((worker) => worker.stop(10_000)))
    .then(close)
    .then(() => process.exit(0))
})
