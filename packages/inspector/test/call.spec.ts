import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { expect, it } from 'vitest'
import { describeCallFacts, listCalls } from '../src/page/worker/call.ts'
import { RunModel } from '../src/page/worker/run-model.ts'
import { readModel } from './support/read-model.ts'

async function playRefund(): Promise<RunModel> {
  const refund = testTool({
    name: 'refund',
    effect: 'write',
    check: () => ({ kind: 'ask', reason: 'more than 50 euros' }),
    run: () => 'Refunded.',
  })
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Answer briefly.',
    model: scriptedModel([
      {
        toolCalls: [
          { name: 'refund', input: { euros: 800 } },
          { name: 'nothing', input: {} },
        ],
      },
      { text: 'Done.' },
    ]),
    tools: [refund],
  })
  const ledger = memoryLedger()
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  const run = runtime.run(agent, 'Refund it.')
  const { pendingApprovals } = await run.result
  await run.approve(pendingApprovals[0]!.toolCallId, { by: 'ada', input: { euros: 80 } })
  await runtime.resume(run.id).result
  return readModel(ledger, run.id)
}

it('tells of a call who asked, who edited and approved it, and with which input it ran', async () => {
  const model = await playRefund()
  const calls = listCalls(model)
  expect(calls.map(({ name, outcome }) => [name, outcome])).toEqual([
    ['refund', 'success'],
    ['nothing', 'unknown_tool'],
  ])
  const call = describeCallFacts(model, calls[0]!.toolCallId)
  expect(call).toMatchObject({
    inputs: [{ by: 'model' }, { by: 'person', who: 'ada' }],
    policy: { plan: 'ask', effect: 'write', reason: 'more than 50 euros' },
    approvals: [{ decision: { approved: true, by: 'ada', isBound: true, isElsewhere: false } }],
    digest: { is: 'same' },
    calls: [{ attempt: 1, outcome: 'success' }],
    isRemoved: false,
  })
  expect(JSON.parse(call!.inputs[1]!.text.text)).toEqual({ euros: 80 })
  expect(call?.result?.recorded.text).toContain('Refunded.')
  for (const { seq } of call!.inputs) expect(model.events[seq - 1]).toBeDefined()

  const refused = describeCallFacts(model, calls[1]!.toolCallId)
  expect(refused).toMatchObject({
    policy: { plan: 'settle', refusal: { outcome: 'unknown_tool' } },
    calls: [],
  })
  expect(describeCallFacts(model, 'call_of_another_run')).toBeUndefined()
})

it('finds a call that ran with another input than is shown', async () => {
  const { events } = await playRefund()
  const forged = new RunModel()
  forged.add(
    events.map((event) =>
      event.type === 'approval_decided' ? { ...event, input: { euros: 8_000 } } : event,
    ),
  )
  expect(describeCallFacts(forged, listCalls(forged)[0]!.toolCallId)?.digest?.is).toBe('other')
})

it('lists each attempt with its failure, and the result that only the last one gave', async () => {
  let tries = 0
  const look = testTool({
    name: 'look',
    retry: { maxAttempts: 3, baseMs: 0, capMs: 0, maxRetryAfterMs: 0 },
    run: () => {
      if (tries++ === 0) throw new Error('the warehouse did not answer')
      return 'four'
    },
  })
  const agent = defineAgent({
    name: 'clerk',
    instructions: 'Answer briefly.',
    model: scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Four.' }]),
    tools: [look],
  })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, 'How many?')
  await run.result
  const stack = 'Error: the warehouse did not answer\n    at look'
  const model = new RunModel()
  for (const event of (await readModel(ledger, run.id)).events) {
    model.add([event.type === 'tool_attempt_failed' ? { ...event, error: stack } : event])
  }
  const call = describeCallFacts(model, listCalls(model)[0]!.toolCallId)
  expect(call?.calls).toMatchObject([
    { attempt: 1, outcome: 'failed' },
    { attempt: 2, outcome: 'success' },
  ])
  expect(call?.calls[0]?.text?.text).toContain('the warehouse did not answer')
  expect(call?.calls[0]?.error?.text).toBe(stack)
  expect(call?.calls[1]).not.toHaveProperty('error')
  expect(call).toMatchObject({ attempts: 2, result: { outcome: 'success', recorded: { text: 'four' } } })
})

it('names all who approved a call, and the standing approval that another one ran on', async () => {
  const approvers = [{ count: 2, roles: ['finance'] }]
  const sign = testTool({ name: 'sign', effect: 'write', check: () => ({ kind: 'ask', approvers }) })
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const call = (name: string) => ({ toolCalls: [{ name, input: {} }] })
  const agent = defineAgent({
    ...{ name: 'clerk', instructions: 'Pay.', tools: [sign, pay] },
    model: scriptedModel([call('sign'), call('pay'), call('pay'), { text: 'Done.' }]),
  })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger, agents: [agent], host: { clock: manualClock(0) } }).run(agent, 'Pay.')
  const approve = async (by: string, more: object) =>
    await run.approve((await run.result).pendingApprovals[0]!, { by, ...more })
  await approve('ann', { roles: ['finance'] })
  await approve('ben', { roles: ['finance'] })
  await approve('cem', { standing: { for: 'session', expiresInMs: 1_000 } })
  await run.result
  const { events } = await readModel(ledger, run.id)
  const model = new RunModel()
  model.add(events)
  const [signed, paid, again] = listCalls(model).map(({ toolCallId }) => describeCallFacts(model, toolCallId))
  expect(signed?.approvals).toMatchObject([
    { approvers, added: [{ by: 'ann', roles: ['finance'] }], decision: { by: 'ben', roles: ['finance'] } },
  ])
  expect(paid).toMatchObject({
    approvals: [{ added: [], decision: { by: 'cem' } }],
    standing: [{ id: paid?.toolCallId, scope: 'session', expiresAt: 1_000 }],
  })
  expect(again).toMatchObject({ approvals: [], standing: [{ id: paid?.toolCallId, by: 'cem' }] })
})
