import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import type { Outcome, Report, Trial } from './message.ts'
import { processorMsOf } from './processor-time.ts'

/**
 * A mutant counts as hung when no test has ended for so many milliseconds, and its processes have had the processor for
 * a third of them since: on a machine that gives them less, the trial waits. Nothing else is judged by this clock.
 */
const silenceMs = 75_000
const busyShare = 1 / 3

/** After so many of these times it counts as hung, however little its processes were given. */
const maxSilences = 6

/** Runs one trial after the other in a process of its own, which is replaced when it hangs. */
export class Tester {
  readonly #took: (test: string, milliseconds: number) => void
  #process: ChildProcess | undefined

  constructor(took: (test: string, milliseconds: number) => void) {
    this.#took = took
  }

  run(trial: Trial): Promise<Outcome> {
    const child = (this.#process ??= started())
    return new Promise((resolve, reject) => {
      let guard: NodeJS.Timeout
      const end = (settle: () => void): void => {
        clearTimeout(guard)
        child.removeAllListeners()
        settle()
      }
      const watch = (silences = 1, before = processorMsOf(child.pid ?? 0)): void => {
        guard = setTimeout(() => {
          const taken = (processorMsOf(child.pid ?? 0) ?? Infinity) - (before ?? 0)
          if (taken < silenceMs * busyShare && silences < maxSilences) return watch(silences + 1, before)
          this.close()
          end(() => resolve({ kind: 'hung', how: `no test has ended for ${silenceMs / 1000} s` }))
        }, silenceMs)
      }
      watch()
      child.on('message', (report: Report) => {
        clearTimeout(guard)
        if (report.kind === 'ended') return end(() => resolve(report.outcome))
        if (report.kind === 'took') this.#took(report.test, report.milliseconds)
        watch()
      })
      child.on('exit', (code) => {
        this.#process = undefined
        end(() => reject(new Error(`The process of the tests ended with ${code}.`)))
      })
      child.send(trial)
    })
  }

  /** Ends the process and those that it has started. */
  close(): void {
    const { pid } = this.#process ?? {}
    this.#process = undefined
    if (pid === undefined) return
    try {
      process.kill(-pid, 'SIGKILL')
    } catch (error) {
      // It has ended already.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Leads a group of processes, so that all of them can be ended together. */
function started(): ChildProcess {
  return fork(join(import.meta.dirname, 'process.ts'), {
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}
