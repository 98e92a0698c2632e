import { fork } from 'node:child_process'
import { ToolError } from '../../define/outcome.ts'
import { scheduleLimit, type Timers } from '../../host.ts'
import type { StatementMessage, StatementReply, StatementRequest } from './answer.ts'

/** How long a process may take until it runs its statement, beside the wait for a lock: on a machine with much to do many seconds. */
export const maxStartMs = 30_000

/** A process ended before the statement ran. */
class ProcessLost extends ToolError {
  override readonly name = 'ProcessLost'
}

type StatementProcess = ReturnType<typeof startProcess>

/** Starts a process that runs statements, one at a time. It ends with this process, however that ends. */
function startProcess() {
  // TypeScript where the sources run as they are, JavaScript where they were compiled.
  const entry = `./statement-process.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`
  // The environment holds the host's keys, and options (a debugger, a loader) that would slow every statement down.
  const child = fork(new URL(entry, import.meta.url), {
    execArgv: [],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  let isUsable = true
  let fault: Error | undefined
  let onMessage: ((message: StatementMessage) => void) | undefined
  child.on('message', (message: StatementMessage) => onMessage?.(message))
  // The last message may be read after the process is gone, but not after the channel to it is closed.
  const ended = Promise.all(
    ['exit', 'disconnect'].map((event) => new Promise((resolve) => void child.once(event, resolve))),
  )
  const unstarted = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      fault = error
      kill()
      resolve()
    })
  })
  const gone = Promise.race([ended, unstarted]).then(() => {
    isUsable = false
  })
  const kill = (): void => {
    isUsable = false
    child.kill('SIGKILL')
  }
  /** Keeps this process alive until it ends. True until it is set, and while a statement runs. */
  const keepHost = (keeps: boolean): void => {
    const word = keeps ? 'ref' : 'unref'
    child[word]()
    child.channel?.[word]()
  }

  /**
   * Runs a statement. Settles at once with how it ended; where the process had to be killed, when that is gone and never
   * before, with why. Rejects with the signal's reason when that aborts, and with `ProcessLost` when the process ended
   * before the statement ran.
   */
  const run = async (
    request: StatementRequest,
    signal: AbortSignal,
    timers: Timers,
  ): Promise<StatementReply> => {
    signal.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<StatementReply>()
    let isRunning = false
    const limitTo = (limitMs: number, reply: StatementReply): (() => void) =>
      scheduleLimit(timers, limitMs, () => killed(() => resolve(reply)))
    let cancelTimer = limitTo(
      maxStartMs + request.lockTimeoutMs,
      refuseStart(maxStartMs + request.lockTimeoutMs),
    )
    let settle = (): void =>
      reject(
        isRunning
          ? new ToolError('The statement ended its process. It may need too much memory: make it cheaper.')
          : new ProcessLost(
              fault === undefined
                ? 'The statement cannot be run: its process ended before it began.'
                : `The statement cannot be run: no process can be started for it (${fault.message}).`,
            ),
      )
    const leave = (): void => {
      onMessage = undefined
      cancelTimer()
      signal.removeEventListener('abort', abort)
    }
    const killed = (outcome: () => void): void => {
      leave()
      settle = outcome
      kill()
    }
    const abort = (): void => killed(() => reject(signal.reason as Error))
    onMessage = (message) => {
      if (message.kind === 'running') {
        isRunning = true
        cancelTimer()
        cancelTimer = limitTo(request.timeoutMs, { kind: 'timed_out' })
      } else if (message.isSpent) killed(() => resolve(message.ending))
      else {
        leave()
        resolve(message.ending)
      }
    }
    signal.addEventListener('abort', abort)
    void gone.then(() => {
      leave()
      settle()
    })
    keepHost(true)
    // If the process is gone by then, `gone` tells.
    child.send(request, () => {})
    return await promise
  }
  return { run, kill, keepHost, gone, isUsable: () => isUsable }
}

const refuseStart = (limitMs: number): StatementReply => ({
  kind: 'not_started',
  why: `the process for it was not ready within ${limitMs} ms, as on a machine with too much to do`,
})

/** How long a process without a statement is kept. */
export const maxIdleMs = 30_000
/** How many such processes are kept. */
const maxIdle = 2

/**
 * Keeps a few processes for the statements to come, since starting one takes far longer than most statements. A kept
 * process keeps no host alive. `idleTimers` end it.
 */
export function keepProcesses(
  timers: Timers,
  idleTimers: Timers,
): {
  /** Runs a statement in a process that runs no other one at that time. */
  run(request: StatementRequest, signal: AbortSignal): Promise<StatementReply>
} {
  const idle: { readonly process: StatementProcess; readonly cancelEnd: () => void }[] = []

  const take = (): StatementProcess | undefined => {
    for (let next = idle.pop(); next !== undefined; next = idle.pop()) {
      next.cancelEnd()
      if (next.process.isUsable()) return next.process
    }
    return undefined
  }
  const keep = (process: StatementProcess): void => {
    if (!process.isUsable()) return
    if (idle.length === maxIdle) return process.kill()
    process.keepHost(false)
    const cancelEnd = idleTimers.schedule(maxIdleMs, () => process.kill())
    const entry = { process, cancelEnd }
    idle.push(entry)
    void process.gone.then(() => {
      cancelEnd()
      if (idle.includes(entry)) idle.splice(idle.indexOf(entry), 1)
    })
  }
  const runIn = async (
    process: StatementProcess,
    request: StatementRequest,
    signal: AbortSignal,
  ): Promise<StatementReply> => {
    const reply = await process.run(request, signal, timers)
    keep(process)
    return reply
  }
  return {
    async run(request, signal) {
      const kept = take()
      if (kept === undefined) return runIn(startProcess(), request, signal)
      try {
        return await runIn(kept, request, signal)
      } catch (error) {
        // It ended while it was idle. The statement has not run: a new process runs it.
        if (!(error instanceof ProcessLost)) throw error
        return runIn(startProcess(), request, signal)
      }
    },
  }
}
