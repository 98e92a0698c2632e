import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openShop, shopAgent, shopConfig, type Shop } from './kit/shop.ts'
import { tallystickHere } from './kit/tallystick.ts'

/** A process that drives a run of the shop's ledger until the test ends. */
async function driver(shop: Shop): Promise<{ readonly end: () => Promise<void> }> {
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
  return { end }
}

const shopping = ['--config', shopConfig] as const

describe('beside a process that drives runs of the ledger', () => {
  it.each([
    ['run', (path: string) => ['run', path, 'Buy tea.', '--yes', ...shopping]],
    ['resume', (path: string, runId: string) => ['resume', path, runId, '--yes', ...shopping]],
    ['fork', (path: string, runId: string) => ['fork', path, runId, '--at', '4', '--yes', ...shopping]],
    ['import', (path: string) => ['import', path, join(path, '..', 'moved.jsonl')]],
  ])('%s works on other runs, and leaves its run alone', async (_verb, wordsOf) => {
    await using shop = await openShop()
    await using other = await openShop()
    const { runId } = await shop.start()
    await other.start()
    await writeFile(
      join(shop.folder, 'moved.jsonl'),
      (await tallystickHere('export', other.ledgerPath)).stdout,
    )
    await driver(shop)
    expect((await tallystickHere(...wordsOf(shop.ledgerPath, runId))).code).toBe(0)
    const { stdout } = await tallystickHere('list', shop.ledgerPath, '--json', '--status', 'under_way')
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toMatchObject([{ agent: 'host' }])
  })

  it('given that it was killed, when its run is resumed, then nobody waits for its lease', async () => {
    await using shop = await openShop()
    const { end } = await driver(shop)
    await end()
    const ledger = sqliteLedger(shop.ledgerPath)
    onTestFinished(() => ledger.close())
    const [run] = await Array.fromAsync(ledger.runs())
    expect(await ledger.lease(run!.runId)).toBeDefined()
    const reported: unknown[] = []
    const model = scriptedModel([{ text: 'Hello.' }])
    const agent = defineAgent({ name: 'host', instructions: '', model })
    const host = { report: (error: unknown) => void reported.push(error) }
    const { result } = createRuntime({ ledger, agents: [agent], host }).resume(run!.runId)
    expect(await result).toMatchObject({ status: 'done', text: 'Hello.' })
    expect(reported).toEqual([])
  })

  it('commands are left for it all the same', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    await driver(shop)
    const { toolCallId } = pendingApprovals[0]!
    expect(await tallystickHere('approve', shop.ledgerPath, runId, toolCallId)).toMatchObject({ code: 0 })
  })

  it('a decision about a run that no process drives is taken, and the run continues here', async () => {
    await using shop = await openShop()
    const { runId, pendingApprovals } = await shop.start()
    await driver(shop)
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
