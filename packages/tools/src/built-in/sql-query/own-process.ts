import { type ChildProcess, fork } from 'node:child_process'
import { ToolError } from '../../execution/tool-error.ts'
import type { Timers } from '../timers.ts'
import type { StatementMessage, StatementReply, StatementRequest } from './protocol.ts'

/** How long the process of a statement may take to come up. */
export const maxStartMs = 10_000

/**
 * Runs a statement in a process of its own. Settles when that process is gone, never before: with how the statement
 * ended, or, where it had to be killed, with why. Rejects with the signal's reason when that aborts.
 */
export function runInOwnProcess(
  request: StatementRequest,
  signal: AbortSignal,
  timers: Timers,
): Promise<StatementReply> {
  return new Promise((resolve, reject) => {
    const child = start()
    let settle: (() => void) | undefined
    let cancelTimer = timers.schedule(maxStartMs, () => end(() => resolve({ kind: 'timed_out' })))
    const end = (outcome: () => void): void => {
      if (settle) return
      settle = outcome
      cancelTimer()
      signal.removeEventListener('abort', abort)
      child.kill('SIGKILL')
    }
    const abort = (): void => end(() => reject(signal.reason as Error))
    signal.addEventListener('abort', abort)

    child.on('message', (message: StatementMessage) => {
      if (message.kind !== 'running') return end(() => resolve(message))
      cancelTimer()
      cancelTimer = timers.schedule(request.timeoutMs, () => end(() => resolve({ kind: 'timed_out' })))
    })
    child.once('error', (error) => {
      end(() => {})
      reject(
        new ToolError(`The statement cannot be run: no process can be started for it (${error.message}).`),
      )
    })
    // The last message may be read after the process is gone, but not after the channel to it is closed.
    void Promise.all([happened(child, 'exit'), happened(child, 'disconnect')]).then(() => {
      end(() =>
        reject(
          new ToolError('The statement ended its process. It may need too much memory: make it cheaper.'),
        ),
      )
      settle?.()
    })
    child.send(request)
  })
}

function start(): ChildProcess {
  // TypeScript where the sources run as they are, JavaScript where they were compiled.
  const entry = new URL(
    `./statement-process.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`,
    import.meta.url,
  )
  // The environment holds the host's keys, and options (a debugger, a loader) that would slow every statement down.
  return fork(entry, { execArgv: [], env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
}

function happened(child: ChildProcess, event: 'exit' | 'disconnect'): Promise<void> {
  return new Promise((resolve) => void child.once(event, () => resolve()))
}
