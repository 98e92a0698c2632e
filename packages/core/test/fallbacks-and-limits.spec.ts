import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Model,
  type ModelRequest,
  type RunResult,
} from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'

describe('fallback models', () => {
  it('take over when a model is given up, see the same history, and stay in use', async () => {
    const clock = manualClock()
    const first = scriptedModel([{ fail: 'authentication' }], 'first')
    const second = scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }], 'second')
    const agent = defineAgent({
      ...{ name: 'a', instructions: '', model: first, fallbacks: [second] },
      tools: [testTool({ name: 'look' })],
    })
    const prices = { first: { inputUsd: 1, outputUsd: 1 }, second: { inputUsd: 2, outputUsd: 2 } }
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent], prices, host: { clock } }).run(
      agent,
      'Go.',
    )
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({
      reason: 'answered',
      text: 'Done.',
      turns: 2,
    })
    expect(first.requests).toHaveLength(1)
    expect(second.requests[0]?.messages).toEqual(first.requests[0]?.messages)
    expect(second.requests).toHaveLength(2)
  })

  it('are not asked where the request itself is at fault', async () => {
    const clock = manualClock()
    const second = scriptedModel([{ text: 'Never.' }], 'second')
    const first = scriptedModel([{ fail: 'invalid_request' }], 'first')
    const agent = defineAgent({ name: 'a', instructions: '', model: first, fallbacks: [second] })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } }).run(agent, 'Go.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'model_failed' })
    expect(second.requests).toHaveLength(0)
  })

  it('retry each on their own, within the total time of the turn', async () => {
    const clock = manualClock()
    const failing = (id: string) =>
      scriptedModel(
        Array.from({ length: 9 }, () => ({ fail: 'overloaded' as const })),
        id,
      )
    const [first, second] = [failing('first'), failing('second')]
    const retry = { maxAttempts: 3, baseMs: 1_000, capMs: 1_000 }
    const agent = defineAgent({ name: 'a', instructions: '', model: first, fallbacks: [second], retry })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } }).run(agent, 'Go.')
    await waitUntilSettled(clock, run.result)
    expect([first.requests.length, second.requests.length]).toEqual([3, 3])
  })
})

describe('a runtime', () => {
  const waiting = () => testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })

  it('lists the runs that wait, and for what', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 3 } }] }, { text: 'Hi.' }])
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [waiting()] })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'Pay.')
    await waitUntilSettled(clock, run.result)
    await waitUntilSettled(clock, runtime.run(agent, 'Greet.').result)
    const found: RunResult[] = []
    for await (const rest of runtime.suspended()) found.push(rest)
    expect(found).toMatchObject([{ runId: run.id, pendingApprovals: [{ name: 'pay', input: { usd: 3 } }] }])
  })

  it('drains: lets a running tool end, begins nothing more, and another runtime continues', async () => {
    const clock = manualClock()
    const ledger = memoryLedger()
    const draining = Promise.withResolvers<void>()
    const look = testTool({ name: 'look', run: () => draining.promise.then(() => 'seen') })
    const model = scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [look] })
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'Go.')
    let drained: Promise<readonly RunResult[]> | undefined
    run.events$.subscribe((event) => {
      if (event.type !== 'tool_started') return
      drained = runtime.drain()
      draining.resolve()
    })
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ status: 'interrupted', toolCalls: 1 })
    expect(await drained).toMatchObject([{ runId: run.id, status: 'interrupted' }])
    expect(model.requests).toHaveLength(1)
    expect(() => runtime.run(agent, 'More.')).toThrow('was drained')
    const next = createRuntime({ ledger, agents: [agent], host: { clock } })
    expect(await waitUntilSettled(clock, next.resume(run.id).result)).toMatchObject({
      reason: 'answered',
      text: 'Done.',
    })
    expect(look.runs).toHaveLength(1)
  })

  it('gives up, when it drains, what does not end in the grace time', async () => {
    const clock = manualClock()
    const ledger = memoryLedger()
    const model = scriptedModel([{ text: 'Endless', hang: true }, { text: 'Done.' }])
    const agent = defineAgent({ name: 'a', instructions: '', model })
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'Go.')
    run.events$.subscribe((event) => {
      if (event.type === 'assistant_started') void runtime.drain(1_000)
    })
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ status: 'interrupted' })
    expect(model.abandoned).toBe(1)
    const next = createRuntime({ ledger, agents: [agent], host: { clock } })
    expect(await waitUntilSettled(clock, next.resume(run.id).result)).toMatchObject({
      reason: 'answered',
      text: 'Done.',
    })
  })

  it('records a definition that has changed, or refuses it', async () => {
    const clock = manualClock()
    const ledger = memoryLedger()
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]
    const agentWith = (instructions: string, model: Model) =>
      defineAgent({ name: 'a', instructions, model, tools: [waiting()] })
    const before = agentWith('Old.', scriptedModel(steps))
    const run = createRuntime({ ledger, agents: [before], host: { clock } }).run(before, 'Pay.')
    const { pendingApprovals } = await waitUntilSettled(clock, run.result)
    const seen: ModelRequest[] = []
    const after = agentWith('New.', scriptedModel([(request) => (seen.push(request), { text: 'Paid.' })]))
    const strict = createRuntime({ ledger, agents: [after], onDrift: 'refuse', host: { clock } })
    await expect(waitUntilSettled(clock, strict.resume(run.id).result)).rejects.toThrow('another definition')
    const next = createRuntime({ ledger, agents: [after], host: { clock } })
    const resumed = next.resume(run.id)
    await waitUntilSettled(clock, resumed.result)
    void resumed.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' })
    expect(await waitUntilSettled(clock, resumed.result)).toMatchObject({ reason: 'answered' })
    expect(seen[0]?.instructions).toBe('New.')
  })

  it('suspends at a limit when a person is to be asked, and continues when it is raised', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }])
    const limits = { maxTurns: 1, onLimit: 'ask' as const }
    const agent = defineAgent({
      name: 'a',
      instructions: '',
      model,
      tools: [testTool({ name: 'look' })],
      limits,
    })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'Go.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({
      status: 'suspended',
      turns: 1,
      limit: 'maxTurns',
    })
    void run.raiseLimit('maxTurns', 2, { by: 'ada' })
    const ended = await waitUntilSettled(clock, run.result)
    expect(ended).toMatchObject({ reason: 'answered', text: 'Done.', turns: 2 })
    expect(ended).not.toHaveProperty('limit')
  })
})
