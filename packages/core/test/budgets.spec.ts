import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Limits,
  type RunResult,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ManualClock,
  type ScriptedModel,
  type ScriptedStep,
} from '@tallystick/testkit'

const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 10, source: 'test 1' } }

interface Outcome {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  readonly model: ScriptedModel
  readonly clock: ManualClock
}

async function runWith(
  limits: Limits,
  steps: readonly ScriptedStep[],
  tools: readonly Tool[] = [],
): Promise<Outcome> {
  const clock = manualClock()
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'spender', instructions: 'Go.', model, tools, limits })
  const ledger = memoryLedger()
  const runtime = createRuntime({ ledger, agents: [agent], prices, host: { clock } })
  const run = runtime.run(agent, 'Spend.')
  const result = await waitUntilSettled(clock, run.result)
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(run.id)) events.push(event)
  return { result, events, model, clock }
}

const look = (usage = {}): ScriptedStep => ({ toolCalls: [{ name: 'look', input: {} }], usage })
const answer: ScriptedStep = { text: 'That is all I know.' }
const changing = (): Tool => {
  let count = 0
  return testTool({ name: 'look', run: () => `look ${++count}` })
}

describe('a token budget', () => {
  it('holds the output of each call to what is left', async () => {
    const { model, result } = await runWith(
      { maxTotalTokens: 3_000 },
      [look({ inputTokens: 400, outputTokens: 100 }), answer],
      [changing()],
    )
    expect(result.reason).toBe('answered')
    const [first, second] = model.requests.map(({ maxOutputTokens }) => maxOutputTokens ?? 0)
    expect(first).toBeLessThan(1_500)
    // 500 are used. The next request carries 500 again, the finalizing call after it too, and what this call puts out.
    expect(second).toBeLessThan((3_000 - 500 - 2 * 500 - 256) / 2)
    expect(second).toBeGreaterThan(580)
  })

  it('makes no call that too little is left for, and lets one last call write the answer', async () => {
    const { events, result, model } = await runWith(
      { maxTotalTokens: 1_500 },
      [look({ inputTokens: 400, outputTokens: 100 }), answer],
      [changing()],
    )
    expect(result).toMatchObject({ reason: 'token_limit', text: 'That is all I know.' })
    expect(model.requests.map(({ toolChoice }) => toolChoice.type)).toEqual(['auto', 'none'])
    expect(events.find(({ type }) => type === 'limit_reached')).toMatchObject({
      ...{ limit: 'maxTotalTokens', max: 1_500, used: 500, policy: 'finalize' },
    })
    // The finalizing call has what was held back for it, and no more.
    expect(model.requests[1]?.maxOutputTokens).toBeLessThan(500)
  })

  it('counts failed attempts', async () => {
    const failing: ScriptedStep = {
      text: 'x',
      usage: { inputTokens: 400, outputTokens: 100 },
      fail: 'overloaded',
    }
    const { result, model } = await runWith({ maxTotalTokens: 510 }, [failing, answer])
    expect(result.usage).toEqual({ inputTokens: 400, outputTokens: 100 })
    expect(model.requests).toHaveLength(1)
    expect(result).toMatchObject({
      ...{ reason: 'token_limit', text: 'x' },
      detail: 'No closing call was made: what is left of maxTotalTokens (510) does not pay for one.',
    })
  })

  it('counts what a cancelled call has used', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ text: 'Well', usage: { inputTokens: 7, outputTokens: 2 }, hang: true }])
    const agent = defineAgent({ name: 'a', instructions: '', model })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent], prices, host: { clock } }).run(
      agent,
      'Go.',
    )
    run.events$.subscribe((event) => {
      if (event.type === 'usage_updated') void run.cancel('enough')
    })
    const result = await waitUntilSettled(clock, run.result)
    expect(result).toMatchObject({
      reason: 'cancelled',
      text: 'Well',
      usage: { inputTokens: 7, outputTokens: 2 },
    })
    expect(result.costUsd).toBeCloseTo(0.000027, 12)
  })
})

describe('a cost budget', () => {
  it('is refused at the start when the price is unknown', () => {
    const agent = defineAgent({
      name: 'a',
      instructions: '',
      model: scriptedModel([], 'dear'),
      limits: { maxCostUsd: 1 },
    })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], prices })
    expect(() => runtime.run(agent, 'Go.')).toThrow(ConfigurationError)
    expect(() => runtime.run(agent, 'Go.')).toThrow('dear has no price')
  })

  it('writes the cost and the price with its version into the event, and lowers the output to what money is left', async () => {
    const { events, result, model } = await runWith(
      { maxCostUsd: 0.02 },
      [look({ inputTokens: 1_000, outputTokens: 300 }), answer],
      [changing()],
    )
    const usage = events.find(({ type }) => type === 'usage_updated')
    expect(usage).toMatchObject({ costUsd: 0.004, price: prices['scripted-1'] })
    // The second call reported nothing: what it is taken to have used is marked as an estimate.
    const estimate = events.findLast((event) => event.type === 'usage_updated')
    expect(estimate).toMatchObject({ turn: 2, estimated: ['inputTokens', 'outputTokens'] })
    expect(result.reason).toBe('answered')
    expect(result.costUsd).toBeGreaterThan(0.005)
    // 0.016 dollars are left; the input costs 0.0013 of them, and that of the finalizing call, which has 256 of output.
    expect(model.requests[1]?.maxOutputTokens).toBeLessThan(1_000)
    expect(model.requests[1]?.maxOutputTokens).toBeGreaterThan(900)
  })

  it('stops the run when the policy says so', async () => {
    const steps = [look({ inputTokens: 1_000, outputTokens: 950 })]
    const { result, model } = await runWith({ maxCostUsd: 0.01, onLimit: 'stop' }, steps, [changing()])
    expect(result).toMatchObject({ status: 'done', reason: 'cost_limit', text: '' })
    expect(model.requests).toHaveLength(1)
  })
})

describe('a time budget', () => {
  it('gives a hanging model up, keeps its text, and lets one last call write the answer', async () => {
    const steps: ScriptedStep[] = [{ text: 'Thinking', hang: true }, answer]
    const { result, model, events } = await runWith({ maxDurationMs: 5_000 }, steps)
    expect(result).toMatchObject({ reason: 'time_limit', text: 'That is all I know.' })
    expect(model.abandoned).toBe(1)
    expect(events.find(({ type }) => type === 'assistant_message_finished')).toMatchObject({
      ...{ partial: true, parts: [{ type: 'text', text: 'Thinking' }] },
    })
  })

  it('asks running tools to stop, and leaves behind those that do not', async () => {
    const deaf = testTool({ name: 'look', effect: 'write', run: () => new Promise(() => {}) })
    const stubborn: Tool = { ...deaf, run: (call) => deaf.run({ ...call, cancelled$: new Never() as never }) }
    const limits = { maxDurationMs: 5_000, graceMs: 100 }
    const { result, events } = await runWith(limits, [look(), answer], [stubborn])
    expect(result.reason).toBe('time_limit')
    expect(events.find(({ type }) => type === 'tool_result')).toMatchObject({ outcome: 'timed_out' })
  })

  it('does not count the time in which a person is waited for', async () => {
    const clock = manualClock()
    const model = scriptedModel([look(), answer])
    const asking = testTool({
      name: 'look',
      effect: 'write',
      check: () => ({ kind: 'ask' }),
      run: () => 'seen',
    })
    const limits = { maxDurationMs: 60_000 }
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [asking], limits })
    const run = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } }).run(agent, 'Go.')
    const rest = await waitUntilSettled(clock, run.result)
    clock.advance(7 * 24 * 3_600_000)
    void run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ann' })
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'answered' })
  })
})

/** Something to subscribe to that never emits. */
class Never {
  subscribe() {
    return { unsubscribe: () => {} }
  }
}

describe('no progress', () => {
  it('serves the recorded answer of a call that keeps giving it, then ends', async () => {
    const tool = testTool({ name: 'look', run: () => 'nothing new' })
    const steps = [...Array.from({ length: 5 }, () => look()), answer]
    const { result, events } = await runWith({ maxRepeats: 2 }, steps, [tool])
    const outcomes = events.flatMap((event) => (event.type === 'tool_result' ? [event.outcome] : []))
    expect(outcomes).toEqual(['success', 'success', 'repeated', 'repeated', 'limit_reached'])
    expect(tool.runs).toHaveLength(2)
    expect(result).toMatchObject({ reason: 'repeat_limit', text: 'That is all I know.' })
    const served = events.find((event) => event.type === 'tool_result' && event.outcome === 'repeated')
    expect(JSON.stringify(served)).toContain('was not run again')
    expect(JSON.stringify(served)).toContain('nothing new')
  })

  it('takes a different answer for progress', async () => {
    const steps = [...Array.from({ length: 6 }, () => look()), answer]
    const { result } = await runWith({ maxRepeats: 2 }, steps, [changing()])
    expect(result).toMatchObject({ reason: 'answered', toolCalls: 6 })
  })

  it('sees two calls that take turns', async () => {
    const tools = ['a', 'b'].map((name) => testTool({ name, run: () => 'same' }))
    const steps: ScriptedStep[] = Array.from({ length: 10 }, (_, index) => ({
      toolCalls: [{ name: index % 2 === 0 ? 'a' : 'b', input: {} }],
    }))
    const { result } = await runWith({ maxRepeats: 2, onLimit: 'stop' }, steps, tools)
    // The first answer of `b` is news, so those of `a` are counted from there on.
    expect(result).toMatchObject({ reason: 'repeat_limit', toolCalls: 5 })
  })

  it('sees the same error again and again, whatever the input', async () => {
    const broken = testTool({
      name: 'look',
      run: () => {
        throw new Error('no network')
      },
    })
    const steps: ScriptedStep[] = [
      ...Array.from({ length: 8 }, (_, index) => ({ toolCalls: [{ name: 'look', input: { index } }] })),
      answer,
    ]
    const { result } = await runWith({ maxRepeats: 4, onLimit: 'stop' }, steps, [broken])
    expect(result).toMatchObject({ reason: 'repeat_limit', toolCalls: 4 })
  })
})

describe('a limit of one tool', () => {
  it('turns away further calls of that tool and lets the run continue', async () => {
    const tools = [changing(), testTool({ name: 'other' })]
    const steps: ScriptedStep[] = [look(), look(), { toolCalls: [{ name: 'other', input: {} }] }, answer]
    const { result, events } = await runWith({ maxCallsByTool: { look: 1 } }, steps, tools)
    const outcomes = events.flatMap((event) => (event.type === 'tool_result' ? [event.outcome] : []))
    expect(outcomes).toEqual(['success', 'limit_reached', 'success'])
    expect(result.reason).toBe('answered')
  })
})
