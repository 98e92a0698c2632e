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
async function startDriver(shop: Shop): Promise<void> {
  const child = spawn(process.execPath, [
    fileURLToPath(import.meta.resolve('./kit/hang.ts')),
    shop.ledgerPath,
  ])
  const closed = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  await once(child.stdout, 'data')
}

const shopping = ['--config', shopConfig] as const

describe('beside a process that drives runs of the ledger', () => {
  it.each([
    ['run', (path: string) => ['run', path, 'Buy tea.', ...shopping]],
    ['resume', (path: string, runId: string) => ['resume', path, runId, '--yes', ...shopping]],
    ['fork', (path: string, runId: string) => ['fork', path, runId, '--at', '4', ...shopping]],
    ['import', (path: string) => ['import', path, join(path, '..', 'moved.jsonl')]],
  ])('%s works, since each run has a driver of its own', async (_verb, wordsOf) => {
    await using shop = await openShop()
    await using other = await openShop()
    const { runId } = await shop.start()
    const moved = join(shop.folder, 'moved.jsonl')
    await other.start()
    await writeFile(moved, (await tallystickHere('export', other.ledgerPath)).stdout)
    await startDriver(shop)
    expect((await tallystickHere(...wordsOf(shop.ledgerPath, runId))).code).toBe(0)
  })

  it('a decision about a run that no process drives is taken, and the run continues here', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    await startDriver(shop)
    const ledger = sqliteLedger(shop.ledgerPath)
    onTestFinished(() => ledger.close())
    const { toolCallId } = pendingApprovals[0]!
    const runtime = createRuntime({ ledger, agents: [shopAgent()] })
    const sent = await runtime.send(runId, { type: 'approve', toolCallId, by: 'ann' })
    expect(sent).toEqual({ accepted: true })
    await runtime.idle()
    expect(await ledger.inbox(runId)).toEqual([])
  })
})
