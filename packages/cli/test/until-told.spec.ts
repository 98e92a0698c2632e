import { expect, it } from 'vitest'
import { createRuntime, memoryLedger, openTurnCalls, type RunId } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import { untilTold } from '../src/runs/await-parent-notified.ts'
import { boss } from './kit/office.ts'

it('is not told before the end of the other lies in the inbox of the run that waits for it', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger }).run(boss(), 'Go.').result
  const worker = pendingApprovals[0]!.runId
  const [call] = openTurnCalls(await foldTo(ledger, runId))
  const toolCallId = call!.toolCallId
  const steps: string[] = []
  const told = untilTold(ledger, runId, worker).then(() => steps.push('told'))
  const settle = async (key: string, child: RunId): Promise<void> => {
    const totals = { runId: child, turns: 1, toolCalls: 0, usage: {} }
    const command = { type: 'settle', toolCallId, outcome: 'success', content: [], child: totals } as const
    await ledger.put(runId, { key, command, at: 0 })
    await ledger.head(runId)
    steps.push(key)
  }
  await settle('of another', runId)
  await foldTo(ledger, runId)
  expect(steps).toEqual(['of another'])
  await settle('of this one', worker)
  await told
  expect(steps).toEqual(expect.arrayContaining(['of this one', 'told']))
  await untilTold(ledger, runId, worker)
})

it('is nothing to wait for where the run does not wait for the other', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger }).run(boss(), 'Go.').result
  const worker = pendingApprovals[0]!.runId
  await untilTold(ledger, worker, runId)
  expect((await ledger.inbox(worker)).length).toBe(0)
})
