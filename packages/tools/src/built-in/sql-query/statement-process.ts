import process from 'node:process'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import type { StatementEnding, StatementMessage, StatementRequest } from './answer.ts'

// A process that runs statements, one after the other. SQLite runs on a second thread of it, so that the first stays awake:
// it ends the process when the process that asked is gone, or when a statement takes too much memory. Nothing less ends a
// running statement.

const maxMemoryBytes = 512 * 1024 * 1024
const memoryCheckMs = 20
/** SQLite gives memory back late: a process that has more than this after a statement is not used again. */
const maxKeptBytes = 256 * 1024 * 1024

if (isMainThread) {
  process.once('disconnect', end)
  supervise(new Worker(new URL(import.meta.url)))
} else {
  const say = (message: StatementMessage): void => parentPort?.postMessage(message, [])
  // Only this thread loads it, so that the process comes up sooner.
  const { runStatement } = await import('./sqlite-statement.ts')
  parentPort?.on('message', (request: StatementRequest) => {
    const ending = runStatement(request, () => say({ kind: 'running' }))
    say({ kind: 'ended', ending, isSpent: false })
  })
}

function supervise(thread: Worker): void {
  let watch: NodeJS.Timeout | undefined
  const say = (message: StatementMessage, then?: () => void): void =>
    void process.send?.(message, () => then?.())
  const sayEnding = (ending: StatementEnding, isSpent: boolean, then?: () => void): void => {
    clearInterval(watch)
    say({ kind: 'ended', ending, isSpent }, then)
  }
  process.on('message', (request: StatementRequest) => {
    thread.postMessage(request, [])
    watch = setInterval(() => {
      if (process.memoryUsage.rss() >= maxMemoryBytes) sayEnding({ kind: 'out_of_memory' }, true, end)
    }, memoryCheckMs)
  })
  thread.on('message', (message: StatementMessage) => {
    if (message.kind === 'running') return say(message)
    sayEnding(message.ending, process.memoryUsage.rss() > maxKeptBytes)
  })
  thread.once('error', ({ message }) =>
    sayEnding({ kind: 'failed', message: `The statement cannot be run: ${message}.` }, true, end),
  )
}

function end(): void {
  process.kill(process.pid, 'SIGKILL')
}
