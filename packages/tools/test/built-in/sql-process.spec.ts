import { execFileSync, fork } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ToolSignal } from '@tallystick/core/vocabulary'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { Subject } from 'rxjs'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { endingOf, toolRun } from '../one-call.ts'
import { HeldTimers } from './held-timers.ts'
import { createShopDatabase } from './shop-database.ts'

const shop = createShopDatabase()
const { folder, path } = shop
afterAll(() => shop.remove())

/** How many processes of ours this one has. */
const processes = (): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'ProcessWrap').length

/** The handle of a process that is gone is closed at the end of the same turn of the event loop. */
async function handlesClosed(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** The processes that a process started and that still run. */
function childrenOf(pid: number): readonly number[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,command=']).toString().split('\n')
  const rows = lines.map((line) => line.trim().split(/ +/))
  return rows
    .filter(
      ([, parent, ...command]) => Number(parent) === pid && command.join(' ').includes('statement-process'),
    )
    .map(([child]) => Number(child))
}

const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'

describe('a statement that does not end', () => {
  it('is stopped at its time, and only ends the call once its process is gone', async () => {
    const timers = new HeldTimers()
    const ending = endingOf(sqlQuery({ path, timeoutMs: 700, timers }), { sql: endless })
    await timers.fire(700)
    expect(await ending).toEqual({
      outcome: 'timed_out',
      text: 'The statement was stopped: it had not finished after 700 ms. Make it cheaper: filter earlier, join on indexed columns, end every recursion.',
    })
    await handlesClosed()
    expect([timers.count, processes()]).toEqual([0, 0])
  })

  it('leaves the event loop free while it runs, and is stopped when the call is cancelled', async () => {
    const timers = new HeldTimers()
    const cancelled$ = new Subject<string>()
    const ending = endingOf(sqlQuery({ path, timers }), { sql: endless }, { cancelled$ })
    // The timer of the statement itself is set when the statement runs.
    await timers.isSet(5_000)
    expect(processes()).toBe(1)
    for (let round = 0; round < 100; round++) await new Promise((resolve) => setImmediate(resolve))
    cancelled$.next('enough')
    expect(await ending).toEqual({ outcome: 'cancelled', text: 'The call was cancelled: enough.' })
    await handlesClosed()
    expect([timers.count, processes()]).toEqual([0, 0])
  })

  it('knows nothing of the environment of the process that asked, where keys are', async () => {
    vi.stubEnv('SHOP_API_KEY', 'known-to-the-host')
    const timers = new HeldTimers()
    const cancelled$ = new Subject<string>()
    const ending = endingOf(sqlQuery({ path, timers }), { sql: endless }, { cancelled$ })
    await timers.isSet(5_000)
    const [child] = childrenOf(process.pid)
    // `ps` shows the variables of a process after its command.
    const shown = execFileSync('ps', ['eww', '-o', 'command=', '-p', String(child)]).toString()
    cancelled$.next('enough')
    await ending
    vi.unstubAllEnvs()
    expect(shown).toContain('statement-process')
    expect(shown.match(/\b[A-Z_]+(?==)/g)?.filter((name) => !name.startsWith('NODE_CHANNEL'))).toEqual([])
  })

  it('is stopped when no caller waits for it any more', async () => {
    const timers = new HeldTimers()
    const received: ToolSignal[] = []
    const subscription = sqlQuery({ path, timers })
      .run(toolRun({ sql: endless }))
      .subscribe((signal) => void received.push(signal))
    await timers.isSet(5_000)
    subscription.unsubscribe()
    while (processes() > 0) await new Promise((resolve) => setImmediate(resolve))
    expect([timers.count, processes()]).toEqual([0, 0])
    expect(received).toEqual([])
  })

  it('is stopped when it takes too much memory', async () => {
    const timers = new HeldTimers()
    const grows =
      'WITH RECURSIVE c(x, s) AS (SELECT 1, zeroblob(50000000) UNION ALL SELECT x + 1, CAST(zeroblob(50000000) AS TEXT) || x FROM c) SELECT count(DISTINCT s) FROM c'
    expect(await endingOf(sqlQuery({ path, timers }), { sql: grows })).toEqual({
      outcome: 'failed',
      text: 'The statement was stopped: it needed too much memory. Select fewer or smaller values, or aggregate them.',
    })
  })

  it('dies with the process that asked for it', async () => {
    const program = join(folder, 'asks.mjs')
    const entry = new URL('../../src/built-in/sql-query/statement-process.ts', import.meta.url)
    writeFileSync(
      program,
      `import { fork } from 'node:child_process'
       const child = fork(new URL(${JSON.stringify(entry.href)}), { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
       child.on('message', () => process.send(child.pid))
       child.send({ path: ${JSON.stringify(path)}, sql: ${JSON.stringify(endless)}, parameters: [], maxRows: 1, maxBytes: 1, timeoutMs: 1, lockTimeoutMs: 1 })`,
    )
    const asking = fork(program, { execArgv: [], stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    const pid = await new Promise<number>(
      (resolve) => void asking.once('message', (sent) => resolve(sent as number)),
    )
    expect(process.kill(pid, 0)).toBe(true)
    asking.kill('SIGKILL')
    await new Promise((resolve) => asking.once('exit', resolve))
    // The orphan is gone as soon as it notices; the test's own time limit fails it where it does not.
    while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve))
    expect(isAlive(pid)).toBe(false)
  })
})

describe('the process of a statement that has ended', () => {
  const one = '{"columns":["1"],"rows":[[1]]}'

  it('runs the next ones, and where it is killed meanwhile another does', async () => {
    const before = childrenOf(process.pid)
    const tool = sqlQuery({ path, timers: new HeldTimers() })
    const ownProcesses = (): readonly number[] =>
      childrenOf(process.pid).filter((pid) => !before.includes(pid))
    const ask = async (): Promise<number> => {
      expect((await endingOf(tool, { sql: 'SELECT 1' })).text).toBe(one)
      const [pid, ...others] = ownProcesses()
      expect(others).toEqual([])
      return pid ?? 0
    }
    const first = await ask()
    expect(await ask()).toBe(first)
    process.kill(first, 'SIGKILL')
    const second = await ask()
    expect(second).not.toBe(first)
    // A statement that has to be killed takes its process along.
    const cancelled$ = new Subject<string>()
    const timers = new HeldTimers()
    const other = sqlQuery({ path, timers })
    await endingOf(other, { sql: 'SELECT 1' })
    const ending = endingOf(other, { sql: endless }, { cancelled$ })
    await timers.isSet(5_000)
    const [, running = 0] = ownProcesses()
    cancelled$.next('enough')
    await ending
    expect([isAlive(running), isAlive(second)]).toEqual([false, true])
    expect((await endingOf(other, { sql: 'SELECT 1' })).text).toBe(one)
    for (const pid of ownProcesses()) process.kill(pid, 'SIGKILL')
    while (ownProcesses().some(isAlive)) await new Promise((resolve) => setImmediate(resolve))
  })

  it('keeps no host alive, and ends with it', async () => {
    const program = join(folder, 'asks-once.mjs')
    const entry = (name: string): string => JSON.stringify(new URL(name, import.meta.url).href)
    writeFileSync(
      program,
      `import { execFileSync } from 'node:child_process'
       import { sqlQuery } from ${entry('../../src/built-in/sql-query/sql-query.ts')}
       import { callTool } from ${entry('../../../testkit/src/index.ts')}
       const { text } = await callTool(sqlQuery({ path: ${JSON.stringify(path)} }), { sql: 'SELECT 1' })
       const children = execFileSync('ps', ['-A', '-o', 'pid=,ppid=']).toString().split('\\n').map((line) => line.trim().split(/ +/))
       const [pid] = children.find(([, parent]) => Number(parent) === process.pid)
       console.log(JSON.stringify({ text, pid: Number(pid) }))`,
    )
    const { text, pid } = JSON.parse(
      execFileSync(process.execPath, ['--no-warnings', program]).toString(),
    ) as Record<string, unknown>
    expect(text).toBe(one)
    while (isAlive(Number(pid))) await new Promise((resolve) => setImmediate(resolve))
  })
})

function isAlive(pid: number): boolean {
  try {
    const status = execFileSync('ps', ['-o', 'stat=', '-p', String(pid)])
      .toString()
      .trim()
    return status !== '' && !status.startsWith('Z')
  } catch {
    return false
  }
}
