import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

/** A process of its own that works on a ledger file. */
export interface LedgerChild {
  /** What it says, line by line. */
  readonly lines: Interface
  /** Kills it at once, as a crash does, and waits until it is gone. */
  kill(): Promise<void>
  /** All that it said, once it has ended without a signal or an error. */
  ended(): Promise<readonly unknown[]>
}

/** In what surroundings a task runs. */
export interface ChildOptions {
  /** As another user, by number. */
  readonly user?: number | undefined
  /** No file of it may be larger than so many KiB, as on a disk that is full. */
  readonly maxFileKiB?: number
}

/** Runs a task of `ledger-child.ts`. */
export function ledgerChild(args: readonly string[], { user, maxFileKiB }: ChildOptions = {}): LedgerChild {
  const script = fileURLToPath(new URL('ledger-child.ts', import.meta.url))
  const limited = ['sh', '-c', `ulimit -f ${maxFileKiB}; exec "$0" "$@"`]
  const [program = '', ...words] = [
    ...(maxFileKiB === undefined ? [] : limited),
    process.execPath,
    script,
    ...args,
  ]
  const child: ChildProcessByStdio<null, Readable, null> = spawn(program, words, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(user !== undefined && { LEDGER_CHILD_USER: String(user) }) },
  })
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  return {
    lines,
    async kill() {
      child.kill('SIGKILL')
      await exit
    },
    async ended() {
      const said = await Array.fromAsync(lines, (line): unknown => JSON.parse(line))
      const [code] = (await exit) as [number | null]
      if (code !== 0) throw new Error(`The child ended with ${code}.`)
      return said
    },
  }
}
