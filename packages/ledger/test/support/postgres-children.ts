import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** A process of its own that works on a Postgres ledger. */
export interface PostgresChild {
  /** What it says next; `undefined` once it has ended. */
  readonly hear: () => Promise<unknown>
  readonly tell: (line: string) => void
  readonly signal: (signal: NodeJS.Signals) => void
  /** Kills it at once, as a crash does, and waits until it is gone. */
  readonly kill: () => Promise<void>
  /** All that it said, once it has ended without a signal or an error. */
  readonly ended: () => Promise<readonly unknown[]>
}

/** Runs a task of `postgres-child.ts`, which does not outlive the test. */
export function postgresChild(args: readonly string[]): PostgresChild {
  const script = fileURLToPath(new URL('postgres-child.ts', import.meta.url))
  const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async (): Promise<unknown> => {
    const { value, done } = await lines.next()
    return done ? undefined : (JSON.parse(value) as unknown)
  }
  return {
    hear,
    tell: (line) => void child.stdin.write(`${line}\n`),
    signal: (signal) => void child.kill(signal),
    async kill() {
      child.kill('SIGKILL')
      await exit
    },
    async ended() {
      const said: unknown[] = []
      for (let line = await hear(); line !== undefined; line = await hear()) said.push(line)
      const [code] = (await exit) as [number | null]
      if (code !== 0) throw new Error(`The child ended with ${code}.`)
      return said
    },
  }
}
