import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { judgeSessions } from '../src/simulation/fleet-judges.ts'

it('a standing approval that a run about another subject begins with is found', async () => {
  const ledger = memoryLedger()
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'Paid.' })
  const steps = [{ toolCalls: [{ name: 'pay', input: { euros: 80 } }] }, { text: 'Paid.' }, { text: 'Yes.' }]
  const agent = defineAgent({
    ...{ name: 'clerk', instructions: 'Pay.', model: scriptedModel(steps), tools: [pay] },
  })
  const session = createRuntime({ ledger, agents: [agent] }).session('s')
  const first = await session.run(agent, 'Pay 80 euros.', { subject: 'ada' })
  const [asked] = (await first.result).pendingApprovals
  await first.approve(asked!.toolCallId, {
    by: 'olga',
    standing: { for: 'session', expiresInMs: 3_600_000 },
  })
  await first.result
  const next = await session.run(agent, 'Is it paid?', { subject: 'ada' })
  await next.result

  const before = await Array.fromAsync(ledger.read(first.id))
  const [start, ...rest] = await Array.fromAsync(ledger.read(next.id))
  expect(start).toMatchObject({ subject: 'ada', standing: [{ by: 'olga', name: 'pay' }] })
  expect(judgeSessions([before, [start!, ...rest]])).toEqual([])
  const aboutBob = { ...start, subject: 'bob' } as RuntimeEvent
  expect(judgeSessions([before, [aboutBob, ...rest]])).toMatchObject([{ law: 13, runId: next.id, seq: 1 }])
})
