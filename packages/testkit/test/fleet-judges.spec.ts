import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { isRefusalTrue, judgeSessions } from '../src/simulation/fleet-judges.ts'

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

it('a refusal that says what was never so is found', async () => {
  const ledger = memoryLedger()
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }), run: () => 'Paid.' })
  const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
  const agent = defineAgent({
    ...{ name: 'clerk', instructions: 'Pay.', model: scriptedModel(steps), tools: [pay] },
  })
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'Pay.')
  const [asked] = (await run.result).pendingApprovals
  await run.approve(asked!.toolCallId, { by: 'olga' })
  await run.result
  const events = await Array.fromAsync(ledger.read(run.id))
  const find = (type: string): number => events.findIndex((event) => event.type === type) + 1
  const [question, decision] = [find('approval_requested'), find('approval_decided')]
  const { toolCallId } = asked!
  const judge = (code: Parameters<typeof isRefusalTrue>[0]['code'], from: number, to: number): boolean =>
    isRefusalTrue({
      ...{ command: { type: 'deny', toolCallId, by: 'bo', reason: 'No.' }, code, from, now: 0 },
      events: events.slice(0, to),
    })
  expect(judge('not_awaiting_approval', question, question)).toBe(false)
  expect(judge('not_awaiting_approval', question - 1, question)).toBe(true)
  expect(judge('not_awaiting_approval', question, decision)).toBe(true)
  expect(judge('approval_expired', question, decision)).toBe(false)
  expect(judge('unknown_call', question, decision)).toBe(false)
  expect(judge('unknown_call', decision, find('tool_result'))).toBe(true)
  expect(judge('run_finished', question, events.length - 1)).toBe(false)
  expect(judge('run_finished', question, events.length)).toBe(true)
  expect(judge('cancelled', 0, events.length)).toBe(false)
})
