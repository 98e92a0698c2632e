import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** What serving has cost a process so far. */
export interface Costs {
  /** The most memory that it has taken. */
  readonly maxBytes: number
  /** How long it has kept processors busy, in milliseconds. */
  readonly processorMs: number
}

/** What a serving process tells its parent: where it listens, what it has cost, or a fault. */
export type Told = { readonly url: string; readonly token: string } | Costs | { readonly fault: string }

/** Where a process serves, and what its requests have to send. */
export interface Place {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** A process that serves a ledger. */
export interface Serving extends AsyncDisposable {
  readonly place: Place
  /** What it reported as its own faults. */
  readonly faults: readonly string[]
  costs(): Promise<Costs>
  /** Kills it at once, as a crash does. */
  kill(): Promise<void>
}

/** Starts a process that serves the ledger of a file. */
export async function startServing(path: string, pieceMs: number): Promise<Serving> {
  const child = fork(join(import.meta.dirname, 'serving-process.ts'), [path, String(pieceMs)])
  const faults: string[] = []
  child.on('message', (told: Told) => void ('fault' in told && faults.push(told.fault)))
  const { url, token } = await next(child, 'url')
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  return {
    place: { url, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } },
    faults,
    async costs() {
      const answer = next(child, 'maxBytes')
      child.send('costs')
      return await answer
    },
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

type With<Field extends string> = Extract<Told, { readonly [field in Field]: unknown }>

/** Waits for what a process tells next of that kind; rejects if it ends before. */
function next<Field extends 'url' | 'maxBytes'>(child: ChildProcess, field: Field): Promise<With<Field>> {
  return new Promise((resolve, reject) => {
    const end = (): void => void child.off('message', hear).off('exit', fail)
    const hear = (told: Told): void => {
      if (!(field in told)) return
      end()
      resolve(told as With<Field>)
    }
    const fail = (code: number | null): void => {
      end()
      reject(new Error(`A serving process ended (${code}) before it told its ${field}.`))
    }
    child.on('message', hear).on('exit', fail)
  })
}
