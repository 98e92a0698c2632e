import { describe, expect, it } from 'vitest'
import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Limits,
} from '@tallystick/core'
import { deriveChildRunId, parseRunId, type OutsideCommand } from '@tallystick/core/vocabulary'
import {
  manualClock,
  mortalLedger,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedReply,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded, stage, type StageOptions } from './stage.ts'

const usage = { inputTokens: 100, outputTokens: 10 }

/** An agent that is a tool of another. */
function worker(
  steps: readonly ScriptedStep[],
  options: Partial<AgentOptions> = {},
): Agent & {
  readonly model: ReturnType<typeof scriptedModel>
} {
  const model = scriptedModel(steps, 'worker-model')
  const agent = defineAgent({
    name: 'worker',
    description: 'Does the work.',
    instructions: 'Work.',
    model,
    ...options,
  })
  return { ...agent, model }
}

const asks = (task = 'Do it.'): ScriptedReply => ({ toolCalls: [{ name: 'worker', input: { task } }], usage })

function boss(agent: Agent<unknown>, steps: readonly ScriptedStep[], more: StageOptions = {}) {
  return stage({ steps, tools: [agentTool(agent)], ...more })
}

describe('a child run', () => {
  it('does the work of a call in a run of its own, whose answer is the result', async () => {
    const child = worker([{ text: 'It is done.', usage }])
    const { play, eventsOf, model, ledger } = boss(child, [
      asks('Find the invoice.'),
      { text: 'Done.', usage },
    ])
    const result = await play()
    expect(result).toMatchObject({ reason: 'answered', text: 'Done.', turns: 2, toolCalls: 1 })
    expect(result).toMatchObject({ children: { runs: 1, turns: 1, toolCalls: 0 } })
    // What the child used counts as its parent's.
    expect(result.usage).toEqual({ inputTokens: 300, outputTokens: 30 })
    expect(child.model.requests[0]).toMatchObject({ instructions: 'Work.' })
    expect(JSON.stringify(child.model.requests[0]?.messages)).toContain('Find the invoice.')
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('It is done.')
    const events = checkedRun(await eventsOf(result.runId))
    const [started] = ofType(events, 'tool_started')
    expect(started?.child).toBe(deriveChildRunId(result.runId, started!.toolCallId))
    expect(parseRunId(started!.child!)).toBe(started!.child)
    const below = checkedRun(await recorded(ledger, started!.child!))
    expect(ofType(below, 'run_started')).toMatchObject([
      { agent: 'worker', parent: { runId: result.runId, relation: 'child' } },
    ])
    expect(ofType(events, 'tool_result')).toMatchObject([
      { outcome: 'success', child: { runId: started!.child, turns: 1, toolCalls: 0, usage } },
    ])
  })

  it('tells the parent when it ends without an answer', async () => {
    const child = worker([{ fail: 'authentication' }])
    const { play, eventsOf } = boss(child, [asks(), { text: 'It failed.' }])
    const { runId, reason } = await play()
    expect(reason).toBe('answered')
    expect(ofType(await eventsOf(runId), 'tool_result')).toMatchObject([
      { outcome: 'failed', content: [{ text: expect.stringContaining('model_failed') as string }] },
    ])
  })

  it('has its limits within what its parent has left, and counts for it', async () => {
    const child = worker([{ text: 'One.', usage }], { limits: { maxTotalTokens: 100_000, maxTurns: 3 } })
    const { play, eventsOf, ledger } = boss(child, [asks(), { text: 'Done.' }], {
      limits: { maxTotalTokens: 1_000, maxTurns: 3, maxToolCalls: 4 },
    })
    const { runId } = await play()
    const [started] = ofType(await eventsOf(runId), 'tool_started')
    const [below] = ofType(await recorded(ledger, started!.child!), 'run_started')
    expect(below?.limits).toMatchObject({ maxTurns: 1, maxToolCalls: 3 })
    // Of 890 that are left, the parent keeps what its finalizing call needs.
    expect(below?.limits.maxTotalTokens).toBeLessThan(890 - 256)
    expect(below?.limits.maxTotalTokens).toBeGreaterThan(450)
  })

  it('that uses up the budget ends its parent at the limit, past which no model is called', async () => {
    const big = { inputTokens: 900, outputTokens: 50 }
    const child = worker([{ text: 'Expensive.', usage: big }])
    const { play, eventsOf, model } = boss(child, [asks(), { text: 'Never said.' }], {
      limits: { maxTotalTokens: 1_000, onLimit: 'stop' },
    })
    const result = await play()
    expect(result).toMatchObject({ reason: 'token_limit', usage: { inputTokens: 1_000, outputTokens: 60 } })
    expect(model.requests).toHaveLength(1)
    checkedRun(await eventsOf(result.runId))
  })

  it('shares what is left with those that work beside it', async () => {
    const calls = [1, 2].map((n) => ({ name: 'worker', input: { task: `Part ${n}.` } }))
    const child = worker([{ text: 'One.' }, { text: 'Two.' }])
    const { play, ledger, eventsOf } = stage({
      ...{ steps: [{ toolCalls: calls, usage }, { text: 'Done.' }], limits: { maxTotalTokens: 1_110 } },
      tools: [agentTool(child, { effect: 'read' })],
    })
    const { runId } = await play()
    const limits: (Limits | undefined)[] = []
    for (const { child: id } of ofType(await eventsOf(runId), 'tool_started')) {
      limits.push(ofType(await recorded(ledger, id!), 'run_started')[0]?.limits)
    }
    const [first = 0, second = 0] = limits.map((each) => each?.maxTotalTokens ?? 0)
    expect(first).toBe(second)
    // 1,000 are left, and the finalizing call keeps its part.
    expect(first + second).toBeLessThan(1_000 - 256)
    expect(first + second).toBeGreaterThan(500)
  })

  it('is cancelled with its parent', async () => {
    const child = worker([{ text: 'Thinking', hang: true }])
    const { start, waitUntilSettled: settled, ledger, eventsOf } = boss(child, [asks()])
    const run = start()
    run.events$.subscribe(({ type }) => {
      if (type === 'tool_started') void run.cancel('enough').catch(() => {})
    })
    expect(await settled(run.result)).toMatchObject({ reason: 'cancelled', children: { runs: 1 } })
    const events = checkedRun(await eventsOf(run))
    const [started] = ofType(events, 'tool_started')
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'cancelled' }])
    const below = checkedRun(await recorded(ledger, started!.child!))
    expect(ofType(below, 'run_finished')).toMatchObject([{ reason: 'cancelled' }])
  })
})

describe('an approval below', () => {
  const pay = () => testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const paying: readonly ScriptedStep[] = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]

  it('shows at the top, is decided at the top, and the whole continues', async () => {
    const tool = pay()
    const {
      start,
      waitUntilSettled: settled,
      eventsOf,
      runtime,
    } = boss(worker(paying, { tools: [tool] }), [asks(), { text: 'All paid.' }])
    const run = start()
    const rest = await settled(run.result)
    expect(rest).toMatchObject({
      status: 'suspended',
      deferredCalls: [],
      pendingApprovals: [{ name: 'pay' }],
    })
    const [pending] = rest.pendingApprovals
    expect(pending!.runId).not.toBe(run.id)
    const listed = []
    for await (const each of runtime.suspended()) listed.push(each)
    expect(listed).toMatchObject([
      { runId: run.id, pendingApprovals: [{ name: 'pay', runId: pending!.runId }] },
    ])
    expect(await settled(run.approve(pending!.toolCallId, { by: 'ada' }))).toEqual({ accepted: true })
    expect(await settled(run.result)).toMatchObject({ reason: 'answered', text: 'All paid.' })
    expect(tool.runs).toHaveLength(1)
    checkedRun(await eventsOf(run))
  })

  const payTwice: readonly ScriptedStep[] = [1, 2].map((n) => ({
    toolCalls: [{ name: 'pay', input: { n } }],
  }))

  it('shows at the top again when the child asks for the next one', async () => {
    const child = worker([...payTwice, { text: 'Paid.' }], { tools: [pay()] })
    const set = boss(child, [asks(), { text: 'All paid.' }])
    const run = set.start()
    for (const n of [1, 2]) {
      const { pendingApprovals } = await set.waitUntilSettled(run.result)
      expect(pendingApprovals).toMatchObject([{ name: 'pay', input: { n } }])
      expect(await set.waitUntilSettled(run.approve(pendingApprovals[0]!, { by: 'ada' }))).toEqual({
        accepted: true,
      })
    }
    expect(await set.waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'All paid.' })
  })

  it('shows at the top what the child asks after another handle has answered it', async () => {
    const child = worker([...payTwice, { text: 'Paid.' }], { tools: [pay()] })
    const set = boss(child, [asks(), { text: 'All paid.' }])
    const run = set.start()
    const [first] = (await set.waitUntilSettled(run.result)).pendingApprovals
    const below = set.runtime.resume(first!.runId)
    await set.waitUntilSettled(below.approve(first!, { by: 'ada' }))
    await set.waitUntilSettled(below.result)
    expect((await set.waitUntilSettled(run.result)).pendingApprovals).toMatchObject([{ input: { n: 2 } }])
  })

  it('can be decided on the child alone, in another process: its end takes the parent further', async () => {
    const tool = pay()
    const first = boss(worker(paying, { tools: [tool] }), [asks(), { text: 'All paid.' }])
    const run = first.start()
    const [pending] = (await first.waitUntilSettled(run.result)).pendingApprovals
    const other = createRuntime({ ledger: first.ledger, agents: [first.agent], host: { clock: first.clock } })
    const child = other.resume(pending!.runId)
    await first.waitUntilSettled(child.approve(pending!.toolCallId, { by: 'ada' }))
    expect(await first.waitUntilSettled(child.result)).toMatchObject({ text: 'Paid.' })
    expect(await first.waitUntilSettled(other.resume(run.id).result)).toMatchObject({
      reason: 'answered',
      text: 'All paid.',
    })
    expect(tool.runs).toHaveLength(1)
    checkedRun(await first.eventsOf(run))
  })

  it('takes no higher limit than its parent granted', async () => {
    const child = worker(paying, { tools: [pay()], limits: { maxTurns: 9 } })
    const first = boss(child, [asks(), { text: 'All paid.' }], { limits: { maxTurns: 6 } })
    const run = first.start()
    const [pending] = (await first.waitUntilSettled(run.result)).pendingApprovals
    const below = first.runtime.resume(pending!.runId)
    const [started] = ofType(await first.eventsOf(run), 'tool_started')
    const granted = started?.grant?.turns ?? 0
    expect(granted).toBeLessThan(6)
    expect(
      await first.waitUntilSettled(below.raiseLimit('maxTurns', granted + 1, { by: 'ada' })),
    ).toMatchObject({
      ...{ accepted: false, code: 'not_raised' },
      message: expect.stringContaining(`has granted it ${granted} of maxTurns`) as string,
    })
  })

  it('counts by its own events, whatever a forged command says that it used', async () => {
    const usage = { inputTokens: 500, outputTokens: 60 }
    const ask = { toolCalls: [{ name: 'pay', input: {} }], usage }
    const steps: readonly ScriptedStep[] = [ask, { text: 'Paid.', usage }]
    const first = boss(worker(steps, { tools: [pay()] }), [asks(), { text: 'All paid.', usage }])
    const run = first.start()
    const [pending] = (await first.waitUntilSettled(run.result)).pendingApprovals
    const [call] = ofType(await first.eventsOf(run), 'tool_deferred')
    const forged = (inputTokens: number): OutsideCommand => ({
      ...{ type: 'settle', toolCallId: call!.toolCallId, outcome: 'success', content: [] },
      child: { runId: pending!.runId, turns: 0, toolCalls: 0, usage: { inputTokens } },
    })
    const put = (key: string, command: OutsideCommand): Promise<boolean> =>
      first.ledger.put(run.id, { key, command, at: first.clock.now() })
    // Refunds, and the settling of a child that is still at work: no run obeys either.
    await put('refund', forged(-1_000_000))
    await put('cheap', forged(0))
    const resumed = first.runtime.resume(run.id)
    expect(await first.waitUntilSettled(resumed.result)).toMatchObject({ status: 'suspended' })
    await first.waitUntilSettled(resumed.approve(pending!.toolCallId, { by: 'ada' }))
    const { usage: counted } = await first.waitUntilSettled(resumed.result)
    expect(counted.inputTokens).toBeGreaterThanOrEqual(1_500)
    checkedRun(await first.eventsOf(run))
  })

  it('is heard all the way up before the runtime is idle, so that its ledger may be closed then', async () => {
    const first = boss(worker(paying, { tools: [pay()] }), [asks(), { text: 'All paid.' }])
    const run = first.start()
    const [pending] = (await first.waitUntilSettled(run.result)).pendingApprovals
    const other = createRuntime({ ledger: first.ledger, agents: [first.agent], host: { clock: first.clock } })
    const child = other.resume(pending!.runId)
    child.approve(pending!.toolCallId, { by: 'ada' }).catch(() => {})
    await first.waitUntilSettled(other.idle())
    expect((await first.eventsOf(run)).at(-1)?.type).toBe('run_finished')
    await first.waitUntilSettled(other.idle())
  })

  it('goes up through several runs', async () => {
    const tool = pay()
    const inner = worker(paying, { tools: [tool] })
    const middle = defineAgent({
      ...{
        name: 'middle',
        description: 'Has others work.',
        instructions: 'Delegate.',
        tools: [agentTool(inner)],
      },
      model: scriptedModel([asks(), { text: 'The worker paid.' }], 'middle-model'),
    })
    const {
      start,
      waitUntilSettled: settled,
      eventsOf,
    } = stage({
      steps: [{ toolCalls: [{ name: 'middle', input: { task: 'Pay.' } }] }, { text: 'All done.' }],
      tools: [agentTool(middle)],
    })
    const run = start()
    const [pending] = (await settled(run.result)).pendingApprovals
    await settled(run.approve(pending!.toolCallId, { by: 'ada' }))
    expect(await settled(run.result)).toMatchObject({
      ...{ reason: 'answered', text: 'All done.' },
      children: { runs: 1, turns: 4, toolCalls: 2 },
    })
    expect(tool.runs).toHaveLength(1)
    checkedRun(await eventsOf(run))
  })

  it('is cancelled with a parent that waits for it', async () => {
    const tool = pay()
    const {
      start,
      waitUntilSettled: settled,
      ledger,
      eventsOf,
    } = boss(worker(paying, { tools: [tool] }), [asks()])
    const run = start()
    const [pending] = (await settled(run.result)).pendingApprovals
    await settled(run.cancel('enough'))
    expect(await settled(run.result)).toMatchObject({ reason: 'cancelled', pendingApprovals: [] })
    const below = checkedRun(await recorded(ledger, pending!.runId))
    expect(ofType(below, 'run_finished')).toMatchObject([{ reason: 'cancelled' }])
    expect(tool.runs).toHaveLength(0)
    checkedRun(await eventsOf(run))
  })

  it('of a child run of another run is not decided here', async () => {
    const one = boss(worker(paying, { tools: [pay()] }), [asks()])
    const run = one.start()
    const [pending] = (await one.waitUntilSettled(run.result)).pendingApprovals
    const other = one.runtime.run(one.agent, 'Something else.')
    await one.waitUntilSettled(other.result)
    const refused = await one.waitUntilSettled(other.approve(pending!.toolCallId, { by: 'ada' }))
    expect(refused).toMatchObject({ accepted: false })
  })
})

describe('a crash of a parent', () => {
  it('at any append takes the same child up again, and nothing takes place twice', async () => {
    const play = async (crashAt: number | undefined) => {
      const tool = testTool({ name: 'pay', effect: 'write', recovery: 'rerun' })
      const store = memoryLedger()
      const clock = manualClock()
      const model = scriptedModel(
        Array.from({ length: 9 }, () => (request) => {
          return request.messages.length > 1 ? { text: 'All paid.' } : asks()
        }),
      )
      const childModel = scriptedModel(
        Array.from({ length: 9 }, () => (request) => {
          return request.messages.length > 1 ? { text: 'Paid.' } : { toolCalls: [{ name: 'pay', input: {} }] }
        }),
        'worker-model',
      )
      const child = defineAgent({
        name: 'worker',
        description: 'Pays.',
        instructions: 'Pay.',
        model: childModel,
        tools: [tool],
      })
      const agent = defineAgent({ name: 'boss', instructions: 'Delegate.', model, tools: [agentTool(child)] })
      const crashes = crashAt === undefined ? [] : [{ append: crashAt, stored: crashAt % 2 === 0 }]
      let ledger = mortalLedger(store, crashes[0])
      let appends = 0
      const first = createRuntime({ ledger, agents: [agent], host: { clock, report: () => {} } })
      const run = first.run(agent, 'Go.')
      const done = await waitUntilSettled(clock, run.result).then(
        (result) => result,
        () => undefined,
      )
      appends = ledger.appends
      if (done?.status === 'done') return { result: done, tool, store, appends }
      ledger = mortalLedger(store)
      const second = createRuntime({ ledger, agents: [agent], host: { clock, report: () => {} } })
      if ((await store.head(run.id)) === undefined) return undefined
      return { result: await waitUntilSettled(clock, second.resume(run.id).result), tool, store, appends }
    }
    const whole = await play(undefined)
    expect(whole?.result).toMatchObject({ text: 'All paid.', children: { runs: 1 } })
    expect(whole!.appends).toBeGreaterThan(10)
    for (let crashAt = 1; crashAt <= whole!.appends; crashAt++) {
      const played = await play(crashAt)
      if (played === undefined) continue
      const { result, tool, store } = played
      expect(result, `crash at append ${crashAt}`).toMatchObject({ text: 'All paid.', children: { runs: 1 } })
      expect(new Set(tool.runs.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1)
      const runs = []
      for await (const { runId } of store.runs()) runs.push(runId)
      expect(runs).toHaveLength(2)
      for (const runId of runs) checkedRun(await recorded(store, runId))
    }
  })
})
