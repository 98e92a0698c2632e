// Starts under an idempotency key: the same order begins one run, and another order is refused, wherever it comes from.
import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type Agent, type RunOptions } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

const texts = Array.from({ length: 20 }, () => ({ text: 'Done.' }))

function telling(name: string): Agent {
  return defineAgent({ name, instructions: 'Answer.', model: scriptedModel(texts) })
}

const order = {
  idempotencyKey: 'order-1',
  sessionId: 's1',
  subject: 'ada',
  owner: 'ada',
  limits: { maxTurns: 3 },
}
const others: readonly (readonly [what: string, agent: string, input: string, options: RunOptions])[] = [
  ['agent', 'other', 'Go.', order],
  ['input', 'office', 'Stop.', order],
  ['session', 'office', 'Go.', { ...order, sessionId: 's2' }],
  [
    'session',
    'office',
    'Go.',
    { idempotencyKey: 'order-1', subject: 'ada', owner: 'ada', limits: order.limits },
  ],
  ['subject', 'office', 'Go.', { ...order, subject: 'bob' }],
  ['owner', 'office', 'Go.', { ...order, owner: 'bob' }],
  ['limits', 'office', 'Go.', { ...order, limits: { maxTurns: 4 } }],
  ['limits', 'office', 'Go.', { ...order, limits: {} }],
]

describe.each(['in the same runtime', 'in another runtime'])('given a run that a key began, %s', (where) => {
  it.each(others)(
    'when the key comes with another %s, then it is refused, and the run is as it was',
    async (what, name, input, options) => {
      const ledger = memoryLedger()
      const agents = [telling('office'), telling('other')]
      const first = createRuntime({ ledger, agents })
      const { runId, seq } = await first.run(agents[0]!, 'Go.', order).result
      const runtime = where === 'in the same runtime' ? first : createRuntime({ ledger, agents })
      const agent = agents.find((each) => each.name === name)!
      const again = async () => await runtime.run(agent, input, options).result
      await expect(again()).rejects.toMatchObject({
        code: 'key_used',
        message: expect.stringContaining(what),
      })
      expect((await runtime.run(agents[0]!, 'Go.', order).result).runId).toBe(runId)
      expect((await ledger.head(runId))?.seq).toBe(seq)
    },
  )

  it('when nobody owns that run, then an owner that comes with its key does not get it', async () => {
    const ledger = memoryLedger()
    const agent = telling('office')
    const key = { idempotencyKey: 'k' }
    const first = createRuntime({ ledger, agents: [agent] })
    await first.run(agent, 'Go.', key).result
    const runtime = where === 'in the same runtime' ? first : createRuntime({ ledger, agents: [agent] })
    const again = async () => await runtime.run(agent, 'Go.', { ...key, owner: 'eve' }).result
    await expect(again()).rejects.toMatchObject({
      code: 'key_used',
      message: expect.stringContaining('another owner'),
    })
  })

  it('when the key comes with another past, then it is refused', async () => {
    const ledger = memoryLedger()
    const agent = telling('office')
    const key = { idempotencyKey: 'k' }
    const said = (text: string) => [
      { role: 'user' as const, content: text },
      { role: 'assistant' as const, content: 'Yes.' },
      { role: 'user' as const, content: 'Go.' },
    ]
    const first = createRuntime({ ledger, agents: [agent] })
    const { runId } = await first.run(agent, said('One.'), key).result
    const runtime = where === 'in the same runtime' ? first : createRuntime({ ledger, agents: [agent] })
    await expect((async () => await runtime.run(agent, said('Two.'), key).result)()).rejects.toMatchObject({
      code: 'key_used',
    })
    await expect((async () => await runtime.run(agent, 'Go.', key).result)()).rejects.toMatchObject({
      code: 'key_used',
    })
    expect((await runtime.run(agent, said('One.'), key).result).runId).toBe(runId)
  })
})

it('given a run that a key began, when its agent has other limits by then, then the same order is still the same run', async () => {
  const ledger = memoryLedger()
  const agent = telling('office')
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.', order).result
  const model = scriptedModel(texts)
  const deployed = defineAgent({ name: 'office', instructions: 'Anew.', model, limits: { maxTurns: 9 } })
  const runtime = createRuntime({ ledger, agents: [deployed] })
  expect((await runtime.run(deployed, 'Go.', order).result).runId).toBe(runId)
})

describe('given a run that another handle continues in this process', () => {
  it('when a start with its key orders something else, then it is refused, and lends the run no context', async () => {
    const ledger = memoryLedger()
    const seen: unknown[] = []
    const look = testTool({
      name: 'look',
      check: () => ({ kind: 'ask' }),
      run: ({ context }) => {
        seen.push(context)
        return 'seen'
      },
    })
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
    const agent = defineAgent({
      name: 'office',
      instructions: 'Look.',
      model: scriptedModel(steps),
      tools: [look],
    })
    const key = { idempotencyKey: 'k' }
    const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.', {
      ...key,
      context: 'of ada',
    }).result
    const runtime = createRuntime({ ledger, agents: [agent] })
    const run = runtime.resume(runId, { context: 'of ada' })
    const { pendingApprovals } = await run.result
    await expect(runtime.run(agent, 'Stop.', { ...key, context: 'of bob' }).result).rejects.toMatchObject({
      code: 'key_used',
    })
    await run.approve(pendingApprovals[0]!, { by: 'ada' })
    expect((await run.result).text).toBe('Done.')
    expect(seen).toEqual(['of ada'])
  })
})
