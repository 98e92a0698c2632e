// A worker that takes one wake, says so, and never ends its drive: it is there to be killed.
// Usage: bullmq-child.ts PORT QUEUE
import { Queue } from 'bullmq'
import { bullmqEngine } from '../../src/bullmq.ts'

const [port = '', name = ''] = process.argv.slice(2)
const queue = new Queue(name, { connection: { port: Number(port) } })
await bullmqEngine({ queue, workerOptions: { lockDuration: 500, stalledInterval: 100 } }).work(
  (wake) => {
    process.stdout.write(`${wake.runId}\n`)
    return new Promise(() => undefined)
  },
  { concurrency: 1 },
)
