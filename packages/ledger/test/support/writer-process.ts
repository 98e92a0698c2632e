import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Ledger } from '@tallystick/core'
import type { SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { onTestFinished } from 'vitest'

/** A process of its own that works on a ledger file as the test says, until the test ends. */
export interface WriterProcess {
  readonly pid: number
  /** Calls a member of its ledger. What that throws is answered, as its code and message. */
  ask(member: keyof Ledger, ...given: readonly unknown[]): Promise<unknown>
  /** Asks and does not wait: what follows is not written before the process has read it. */
  signal(name: NodeJS.Signals): void
  /** Kills it at once, as a crash does, and waits until it is gone. */
  kill(): Promise<void>
}

interface Child extends Omit<WriterProcess, 'ask'> {
  readonly isKilled: boolean
  ask(member: 'open' | keyof Ledger, ...given: readonly unknown[]): Promise<unknown>
}

/** Processes whose test has ended, with their ledgers closed: starting one takes longer than most tests. */
const resting: Child[] = []

/** Returns a process that has the ledger open. */
export async function writerProcess(path: string, options: SqliteLedgerOptions = {}): Promise<WriterProcess> {
  const child = resting.pop() ?? started()
  onTestFinished(async ({ task }) => {
    if (child.isKilled) return
    // A process in the middle of a failed test may be stopped, or at work.
    if (task.result?.state === 'fail') return await child.kill()
    await child.ask('close')
    resting.push(child)
  })
  const answer = await child.ask('open', path, options)
  if (answer !== 'open') throw new Error(`The process cannot open the ledger: ${JSON.stringify(answer)}`)
  return child
}

/** A process that ends with this one, and keeps it from nothing. */
function started(): Child {
  const script = fileURLToPath(new URL('writer-child.ts', import.meta.url))
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(process.execPath, [script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  for (const handle of [child, child.stdin as Socket, child.stdout as Socket]) handle.unref()
  const exit = once(child, 'exit')
  let isKilled = false
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    pid: child.pid ?? 0,
    get isKilled() {
      return isKilled
    },
    async ask(member, ...given) {
      child.stdin.write(`${JSON.stringify([member, ...given])}\n`)
      const { done, value } = await lines.next()
      if (done) throw new Error(`The process said no more; it ended with ${String(await exit)}.`)
      return JSON.parse(value)
    },
    signal: (name) => void child.kill(name),
    async kill() {
      isKilled = true
      child.kill('SIGKILL')
      await exit
    },
  }
}
