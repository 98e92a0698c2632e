import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRuntime } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openShop, shopAgent, shopConfig, type Shop } from './kit/shop.ts'
import { tallystickHere } from './kit/tallystick.ts'

/** A process that drives a run of the shop's ledger until the test ends. */
async function driver(
  shop: Shop,
): Promise<{ readonly pid: number | undefined; readonly end: () => Promise<void> }> {
  const child = spawn(process.execPath, [
    fileURLToPath(import.meta.resolve('./kit/hang.ts')),
    shop.ledgerPath,
  ])
  const closed = once(child, 'close')
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await closed
  }
  onTestFinished(end)
  await once(child.stdout, 'data')
  return { pid: child.pid, end }
}

const shopping = ['--config', shopConfig] as const

describe('beside a process that drives runs of the ledger', () => {
  it.each([
    ['run', (path: string) => ['run', path, 'Buy tea.', ...shopping]],
    ['resume', (path: string, runId: string) => ['resume', path, runId, '--yes', ...shopping]],
    ['fork', (path: string, runId: string) => ['fork', path, runId, '--at', '4', ...shopping]],
    ['import', (path: string) => ['import', path, join(path, '..', 'moved.jsonl')]],
  ])('%s says who that is and what can be done, and changes nothing', async (_verb, wordsOf) => {
    await using shop = await openShop()
    await using other = await openShop()
    const { runId } = await shop.start()
    const moved = join(shop.folder, 'moved.jsonl')
    await other.start()
    await writeFile(moved, (await tallystickHere('export', other.ledgerPath)).stdout)
    const { pid, end } = await driver(shop)
    const shown = async (): Promise<string> =>
      (await tallystickHere('list', shop.ledgerPath, '--json')).stdout
    const before = await shown()
    const { code, stderr } = await tallystickHere(...wordsOf(shop.ledgerPath, runId))
    expect(code).toBe(1)
    expect(stderr).toMatch(
      new RegExp(`error: The ledger .* is being written by process ${pid} on .*approve, deny`),
    )
    expect(await shown()).toBe(before)
    await end()
    expect((await tallystickHere(...wordsOf(shop.ledgerPath, runId))).code).toBe(0)
  })

  it('commands are left for it all the same', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    await driver(shop)
    const { toolCallId } = pendingApprovals[0]!
    expect(await tallystickHere('approve', shop.ledgerPath, runId, toolCallId)).toMatchObject({ code: 0 })
  })

  it('a command that the library sends to a run that no process drives stays in its inbox, as the error says', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    const { end } = await driver(shop)
    const ledger = sqliteLedger(shop.ledgerPath, { busyTimeoutMs: 1 })
    onTestFinished(() => ledger.close())
    const { toolCallId } = pendingApprovals[0]!
    const command = { type: 'approve', toolCallId, by: 'ann' } as const
    const sent = createRuntime({ ledger, agents: [shopAgent()] }).send(runId, command)
    await expect(sent).rejects.toThrow(/runtime\.send\(\) has put it there already/)
    expect(await ledger.inbox(runId)).toMatchObject([{ command }])
    await end()
    const { text } = await createRuntime({ ledger, agents: [shopAgent()] }).resume(runId).result
    expect(text).toContain('Payment: 5 USD paid')
    expect(await ledger.inbox(runId)).toEqual([])
  })
})
