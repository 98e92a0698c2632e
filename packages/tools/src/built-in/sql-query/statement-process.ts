// The process of one statement. SQLite runs on a thread of it, so that this one stays awake: it ends the process when
// the process that asked is gone, or when the statement takes too much memory. Nothing less ends a running statement.
import process from 'node:process'
import { Worker } from 'node:worker_threads'
import type { StatementMessage, StatementRequest } from './protocol.ts'
import { entryBeside } from './protocol.ts'

const memoryBytesMax = 512 * 1024 * 1024
const memoryCheckMs = 20

const end = (): void => void process.kill(process.pid, 'SIGKILL')
const say = (message: StatementMessage, then?: () => void): void =>
  void process.send?.(message, () => then?.())

process.once('disconnect', end)
process.once('message', (request: StatementRequest) => {
  const thread = new Worker(entryBeside(import.meta.url, 'statement-thread'), { workerData: request })
  thread.on('message', (message: StatementMessage) => say(message))
  thread.once('error', ({ message }) =>
    say({ kind: 'failed', message: `The statement cannot be run: ${message}.` }),
  )
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() < memoryBytesMax) return
    clearInterval(watch)
    say({ kind: 'out_of_memory' }, end)
  }, memoryCheckMs)
})
