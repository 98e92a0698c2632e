import { expect, it } from 'vitest'
import { createRuntime, memoryLedger, type RunId } from '@tallystick/core'
import { openTurnCalls } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import { awaitParentNotified } from '../src/verbs/resume.ts'
import { boss } from './kit/office.ts'

it('waits until the end of the child run lies in the inbox of its parent', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger }).run(boss(), 'Go.').result
  const child = pendingApprovals[0]!.runId
  const [call] = openTurnCalls(await foldTo(ledger, runId))
  const toolCallId = call!.toolCallId
  const steps: string[] = []
  const notified = awaitParentNotified(ledger, runId, child).then(() => steps.push('told'))
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
  await settle('of this one', child)
  await notified
  expect(steps).toEqual(expect.arrayContaining(['of this one', 'told']))
  await awaitParentNotified(ledger, runId, child)
})

it('is nothing to wait for where the run does not wait for the other', async () => {
  const ledger = memoryLedger()
  const { runId, pendingApprovals } = await createRuntime({ ledger }).run(boss(), 'Go.').result
  const child = pendingApprovals[0]!.runId
  await awaitParentNotified(ledger, child, runId)
  expect((await ledger.inbox(child)).length).toBe(0)
})
