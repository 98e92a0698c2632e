// The process of one statement. SQLite runs on a second thread of it, so that the first stays awake: it ends the process
// when the process that asked is gone, or when the statement takes too much memory. Nothing less ends a running
// statement.
import process from 'node:process'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { StatementMessage, StatementRequest } from './protocol.ts'

const maxMemoryBytes = 512 * 1024 * 1024
const memoryCheckMs = 20

if (isMainThread) {
  process.once('disconnect', end)
  process.once('message', supervise)
} else {
  const say = (message: StatementMessage): void => parentPort?.postMessage(message, [])
  // Only this thread loads it, so that the process of a statement comes up sooner.
  const { runStatement } = await import('./run-statement.ts')
  say({ kind: 'running' })
  say(runStatement(workerData as StatementRequest))
}

function supervise(request: StatementRequest): void {
  const say = (message: StatementMessage, then?: () => void): void =>
    void process.send?.(message, () => then?.())
  const thread = new Worker(new URL(import.meta.url), { workerData: request })
  thread.on('message', (message: StatementMessage) => say(message))
  thread.once('error', ({ message }) =>
    say({ kind: 'failed', message: `The statement cannot be run: ${message}.` }),
  )
  const watch = setInterval(() => {
    if (process.memoryUsage.rss() < maxMemoryBytes) return
    clearInterval(watch)
    say({ kind: 'out_of_memory' }, end)
  }, memoryCheckMs)
}

function end(): void {
  process.kill(process.pid, 'SIGKILL')
}
