import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Ledger } from '@tallystick/core'
import type { SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'

/** A process of its own that works on a ledger file as it is told, until the test ends. */
export interface WriterProcess {
  readonly pid: number
  /** Calls a member of its ledger. What that throws is answered, as its code and message. */
  ask(member: keyof Ledger, ...given: readonly unknown[]): Promise<unknown>
  /** Asks and does not wait: what follows is not written before the process has read it. */
  signal(name: NodeJS.Signals): void
  /** Kills it at once, as a crash does, and waits until it is gone. */
  kill(): Promise<void>
}

/** Starts one. */
export async function writerProcess(path: string, options: SqliteLedgerOptions = {}): Promise<WriterProcess> {
  const script = fileURLToPath(new URL('writer-child.ts', import.meta.url))
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(
    process.execPath,
    [script, path, JSON.stringify(options)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const exit = once(child, 'exit')
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exit
  }
  onTestFinished(kill)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async (): Promise<unknown> => {
    const { done, value } = await lines.next()
    if (done) throw new Error(`The process said no more; it ended with ${String(await exit)}.`)
    return JSON.parse(value)
  }
  await hear()
  return {
    pid: child.pid ?? 0,
    async ask(member, ...given) {
      child.stdin.write(`${JSON.stringify([member, ...given])}\n`)
      return await hear()
    },
    signal: (name) => void child.kill(name),
    kill,
  }
}
