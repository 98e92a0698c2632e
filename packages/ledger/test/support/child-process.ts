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
  /** All that it said, once it has ended by itself without an error. */
  ended(): Promise<readonly unknown[]>
}

/** Runs a task of `ledger-child.ts`; as another user, by number, where one is given. */
export function ledgerChild(args: readonly string[], user?: number): LedgerChild {
  const child: ChildProcessByStdio<null, Readable, null> = spawn(
    process.execPath,
    [fileURLToPath(new URL('ledger-child.ts', import.meta.url)), ...args],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...(user !== undefined && { LEDGER_CHILD_USER: String(user) }) },
    },
  )
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
