import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stopping, type Fate } from './crash-boundaries.ts'
import type { Store } from './crash-store.ts'
import { continueProcess, stopProcess } from './stopped-process.ts'

/** What a process is to do. */
export interface ChildTask {
  readonly store: Store
  readonly scenario: string
  /** The steps of the scenario that it sees to: from this one, up to the other, which is not included. */
  readonly fromStep: number
  readonly toStep?: number
  readonly session: string
  readonly fate: Fate
  /** The journal of the world, and the file of acknowledgements. */
  readonly world: string
  readonly acknowledged: string
}

/** How a process ended that was not killed. */
export interface ChildEnd {
  /** The boundaries that it crossed. */
  readonly crossed: readonly string[]
  /** Errors that no caller handled. */
  readonly strays: readonly string[]
  /** The error of ours that kept it from what it was to do. */
  readonly failure?: string
}

/** A process that plays a scenario. */
export interface CrashProcess {
  /** Resolves when it is stopped, with the place; with how it went, where it ended or was killed instead. */
  readonly stopped: Promise<string | Ended>
  /** Lets a process that was stopped continue. */
  readonly thaw: () => void
  readonly ended: Promise<Ended>
}

/** How a process went. */
export type Ended =
  | { readonly kind: 'killed' }
  | { readonly kind: 'ended'; readonly said: ChildEnd }
  | { readonly kind: 'broken'; readonly why: string }

const script = fileURLToPath(new URL('crash-child.ts', import.meta.url))

export function startProcess(task: ChildTask): CrashProcess {
  const child = spawn(process.execPath, [script, JSON.stringify(task)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // The name of its connections: `untilGone` finds them by it.
    env: { ...process.env, PGAPPNAME: task.session },
  })
  let [lastLine, complaint] = ['', '']
  let stop: (place: string) => void = () => undefined
  const hasStopped = new Promise<string>((resolve) => {
    stop = resolve
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (!line.startsWith(stopping)) {
      lastLine = line
      return
    }
    stopProcess(child)
    stop(line.slice(stopping.length))
  })
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()))
  const ended = once(child, 'close').then(([code, signal]: unknown[]): Ended => {
    if (signal === 'SIGKILL') return { kind: 'killed' }
    if (code === 0 && lastLine !== '') return { kind: 'ended', said: JSON.parse(lastLine) as ChildEnd }
    return { kind: 'broken', why: `it ended with ${String(code ?? signal)}: ${complaint.trim()}` }
  })
  return {
    stopped: Promise.race([hasStopped, ended]),
    thaw: () => continueProcess(child),
    ended,
  }
}
