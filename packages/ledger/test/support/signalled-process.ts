import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { continueProcess, stopProcess } from './stopped-process.ts'

const script = fileURLToPath(new URL('signalled-child.ts', import.meta.url))

/** What a process of `signalled-child.ts` does. */
export interface SignalledWork {
  readonly task: 'upgrade' | 'redact'
  readonly path: string
  readonly runId?: string
}

/** What a process says that has come to its end: how many statements, or transactions, it has counted, and what its work came to. */
export interface WorkDone {
  readonly executed: number
  readonly done?: unknown
}

function argsOf({ task, path, runId = '' }: SignalledWork, signal: string, number: number): string[] {
  return [script, task, path, signal, String(number), runId]
}

/** Lets a process work that is killed before a statement, counted from 1. Returns whether it came that far. */
export function killedAt(work: SignalledWork, statement: number): boolean {
  return killedOrDone(work, statement) === 'killed'
}

/** Lets a process do its work to the end. */
export function workDone(work: SignalledWork): WorkDone {
  return killedOrDone(work, 0) as WorkDone
}

function killedOrDone(work: SignalledWork, statement: number): 'killed' | WorkDone {
  const args = argsOf(work, 'SIGKILL', statement)
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (signal === 'SIGKILL') return 'killed'
  if (status !== 0) throw new Error(`The process ended with ${status}: ${stderr}`)
  return JSON.parse(stdout) as WorkDone
}

/**
 * Lets a process work that stops before a transaction, counted from 1, and does something else meanwhile. Resolves with what the process did, once it has continued and ended.
 */
export async function stoppedAt(
  work: SignalledWork,
  transaction: number,
  meanwhile: () => Promise<void>,
): Promise<WorkDone> {
  const child = spawn(process.execPath, argsOf(work, 'SIGSTOP', transaction), {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  try {
    let last: unknown
    for await (const line of createInterface({ input: child.stdout })) {
      last = JSON.parse(line)
      if (last !== 'stopped') continue
      stopProcess(child)
      await meanwhile()
      continueProcess(child)
    }
    const [status] = (await exit) as [number | null]
    if (status !== 0) throw new Error(`The process ended with ${status}.`)
    return last as WorkDone
  } finally {
    child.kill('SIGKILL')
  }
}

/** So many of the numbers from 1 to the last, which is one of them, spread evenly. */
export function spread(last: number, count: number): readonly number[] {
  return [...new Set(Array.from({ length: count }, (_, index) => Math.ceil((last * (index + 1)) / count)))]
}
