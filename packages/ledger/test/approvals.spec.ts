import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createRuntime, type Ledger, type LedgerConflictError, type RunId } from '@tallystick/core'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { payingAgent } from './support/paying-agent.ts'
import { temporaryFolder } from './support/temporary-folder.ts'

/** A run that waits for a person, whose approval is unread in the inbox. */
async function approvedRun(ledger: Ledger): Promise<RunId> {
  const agent = payingAgent(() => {})
  const rest = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.').result
  const { toolCallId } = rest.pendingApprovals[0]!
  await ledger.put(rest.runId, { key: 'k', at: 0, command: { type: 'approve', toolCallId, by: 'ada' } })
  return rest.runId
}

/** What is on record of runs: how often each decided, started and ended. */
async function onRecord(ledger: Ledger, runIds: readonly RunId[]): Promise<readonly string[]> {
  const found: string[] = []
  for (const runId of runIds) {
    const types = (await Array.fromAsync(ledger.read(runId))).map(({ type }) => type)
    const count = (type: string): number => types.filter((other) => other === type).length
    found.push(
      `${count('approval_decided')} ${count('tool_started')} ${count('tool_result')} ${types.at(-1)}`,
    )
  }
  return found
}

/** Another process that resumes each run that it reads about. */
async function resumer(
  path: string,
  world: string,
  options: SqliteLedgerOptions,
): Promise<{
  resume: (runId: RunId) => Promise<unknown>
  end: () => Promise<void>
}> {
  const script = fileURLToPath(new URL('./support/approval-child.ts', import.meta.url))
  const child: ChildProcessByStdio<Writable, Readable, null> = spawn(
    process.execPath,
    [script, path, world, JSON.stringify(options)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hear = async (): Promise<unknown> => {
    const { done, value } = await lines.next()
    if (done) throw new Error(`The process said no more; it ended with ${String(await exit)}.`)
    return JSON.parse(value)
  }
  expect(await hear()).toBe('open')
  return {
    resume(runId) {
      child.stdin.write(`${runId}\n`)
      return hear()
    },
    async end() {
      child.stdin.end()
      expect(await exit).toEqual([0, null])
    },
  }
}

describe('one approval in a file', () => {
  it('that two connections resume at once runs the tool once', async () => {
    const path = join(temporaryFolder(), 'runs.db')
    const [one, two] = [sqliteLedger(path), sqliteLedger(path)]
    const paid: RunId[] = []
    const runtimes = [one, two].map((ledger) =>
      createRuntime({ ledger, agents: [payingAgent((runId) => paid.push(runId))] }),
    )
    const runIds: RunId[] = []
    for (let round = 0; round < 20; round++) {
      const runId = await approvedRun(one)
      runIds.push(runId)
      const endings = await Promise.allSettled(runtimes.map((runtime) => runtime.resume(runId).result))
      const reported = endings.map((ending) =>
        ending.status === 'fulfilled' ? ending.value.reason : (ending.reason as LedgerConflictError).code,
      )
      expect(reported).toContain('answered')
      expect(new Set([...reported, 'answered', 'ledger_conflict'])).toEqual(
        new Set(['answered', 'ledger_conflict']),
      )
    }
    expect(paid).toEqual(runIds)
    expect(await onRecord(one, runIds)).toEqual(runIds.map(() => '1 1 1 run_finished'))
    await Promise.all([one.close(), two.close()])
  })

  it('that two processes resume at once runs the tool once, and the books balance', async () => {
    const folder = temporaryFolder()
    const [path, world] = [join(folder, 'runs.db'), join(folder, 'world')]
    writeFileSync(world, '')
    const ledger = sqliteLedger(path)
    const processes = await Promise.all([1, 2].map(() => resumer(path, world, {})))
    const runIds: RunId[] = []
    for (let round = 0; round < 20; round++) {
      const runId = await approvedRun(ledger)
      runIds.push(runId)
      const reported = await Promise.all(processes.map(({ resume }) => resume(runId)))
      // The second follows the first.
      expect(reported).toEqual(['answered', 'answered'])
    }
    await Promise.all(processes.map(({ end }) => end()))
    expect(readFileSync(world, 'utf8').trimEnd().split('\n')).toEqual(runIds)
    expect(await onRecord(ledger, runIds)).toEqual(runIds.map(() => '1 1 1 run_finished'))
    expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({ ok: true, runs: 20 })
    await ledger.close()
  }, 60_000)
})
