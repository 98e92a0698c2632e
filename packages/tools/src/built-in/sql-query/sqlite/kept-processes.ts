import type { Timers } from '../../timers.ts'
import { ProcessLost, startProcess, type StatementProcess } from './own-process.ts'
import type { StatementReply } from '../answer/statement.ts'
import type { StatementRequest } from './protocol.ts'

/** How long a process without a statement is kept. */
export const maxIdleMs = 30_000
/** How many such processes are kept. */
const maxIdle = 2

/** Runs statements, each in a process that runs no other one meanwhile. */
export interface StatementProcesses {
  /** As `run` of a `StatementProcess`. */
  run(request: StatementRequest, signal: AbortSignal): Promise<StatementReply>
}

interface IdleProcess {
  readonly process: StatementProcess
  readonly cancelEnd: () => void
}

/**
 * Keeps a few processes for the statements to come, since starting one takes far longer than most statements. A kept
 * process keeps no host alive. `idleTimers` end it.
 */
export function keptProcesses(timers: Timers, idleTimers: Timers): StatementProcesses {
  const idle: IdleProcess[] = []

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
