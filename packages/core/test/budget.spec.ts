import {
  type Limits,
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  type RunResult,
  type RuntimeEvent,
  type Tool,
} from '@tallystick/core'
import { deriveChildRunId, type ChildTotals, type Grant } from '@tallystick/core/vocabulary'
import {
  given,
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ManualClock,
  type ScriptedModel,
  type ScriptedStep,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import {
  assumeChildTotals,
  computeLeft,
  findGrantFault,
  grantChild,
  limitChild,
  sumSpent,
} from '../src/machine/budget.ts'
import type { Call, RunState, StreamingState } from '../src/machine/state.ts'
import { idle } from './actions.ts'
import { started, settled, working } from './open-calls.ts'
import { begun, called, callId, failure, runId } from './pages.ts'

describe('what is left', () => {
  const totals = (state: RunState): RunState['totals'] => ({
    ...state.totals,
    ...{ turns: 2, toolCalls: 3, children: { runs: 1, turns: 4, toolCalls: 5 } },
    ...{ usage: { inputTokens: 60, outputTokens: 30 }, costUsd: 0.5 },
  })
  const limits: Limits = {
    ...{
      maxTurns: 10,
      maxToolCalls: 10,
      maxTotalTokens: 200,
      maxTotalInputTokens: 100,
      maxTotalOutputTokens: 100,
    },
    maxCostUsd: 2,
  }

  it('is what neither the run nor its child runs have spent', () => {
    const state = idle(limits)
    expect(sumSpent({ ...state, totals: totals(state) })).toEqual({
      ...{ turns: 6, toolCalls: 8, tokens: 90, inputTokens: 60, outputTokens: 30, costUsd: 0.5 },
    })
    expect(computeLeft({ ...state, totals: totals(state) })).toEqual({
      ...{ turns: 4, toolCalls: 2, tokens: 110, inputTokens: 40, outputTokens: 70, costUsd: 1.5 },
    })
    expect(computeLeft(idle()).turns).toBe(Infinity)
    expect(computeLeft({ ...state, totals: totals(state), limits: { maxTurns: 5 } }).turns).toBe(0)
  })

  it('is less by what a model call has not used of its grant', () => {
    const grant = { turns: 1, inputTokens: 20, outputTokens: 10, costUsd: 0.2 }
    const state = given([...begun({ limits }), called(1, 1, { grant })]).state as StreamingState
    expect(computeLeft(state)).toMatchObject({
      turns: 9,
      tokens: 170,
      inputTokens: 80,
      outputTokens: 90,
      costUsd: 1.8,
    })
    const used = {
      ...state.totals,
      usage: { inputTokens: 25 },
      latestUsage: { inputTokens: 25 },
      costUsd: 0.05,
    }
    expect(computeLeft({ ...state, totals: used })).toMatchObject({
      ...{ tokens: 200 - 25 - 5, inputTokens: 75, outputTokens: 90, costUsd: 2 - 0.05 - (0.2 - 0.05) },
    })
    const failed = { ...state, attempt: { ...state.attempt, failed: { failure: failure() } } }
    expect(computeLeft(failed)).toMatchObject({ turns: 9, tokens: 200 })
  })

  it('is less by what a summary and child runs are granted, as long as they are under way', () => {
    const grant: Grant = { turns: 2, toolCalls: 3, tokens: 50 }
    const state = idle(limits)
    const compacting = {
      model: state.definition.model,
      replacedMessages: 1,
      grant: { inputTokens: 20, outputTokens: 10 },
    }
    expect(computeLeft({ ...state, compacting })).toMatchObject({ turns: 10, tokens: 170, inputTokens: 80 })
    const left = (call: Partial<Call>) => computeLeft(working([call], { limits }))
    expect(left({ ...started, child: 'a', grant })).toMatchObject({ turns: 7, toolCalls: 7, tokens: 150 })
    for (const call of [
      { ...settled(), child: 'a', grant },
      { ...started, child: 'a' },
      { ...started, grant },
    ]) {
      expect(left(call)).toMatchObject({ turns: 9, toolCalls: 10, tokens: 200 })
    }
  })

  it('is what a grant may hold, and it bounds all that is limited', () => {
    const fault = (
      grant: Grant,
      spender: 'model_call' | 'child_run' = 'child_run',
      more: Limits = { maxTurns: 3, maxToolCalls: 4 },
    ) => findGrantFault(idle(more), grant, spender)
    expect(fault({ turns: 3, toolCalls: 4 })).toBeUndefined()
    expect(fault({ turns: 4, toolCalls: 4 })).toBe('4 of maxTurns (3) are granted, and 3 are left')
    expect(fault({ turns: 3 })).toBe('the grant does not bound what maxToolCalls limits to 4')
    expect(fault({})).toBe('the grant does not bound what maxTurns limits to 3')
    expect(fault({}, 'model_call')).toBeUndefined()
    expect(fault({}, 'model_call', { maxTotalTokens: 9 })).toBe(
      'the grant does not bound what maxTotalTokens limits to 9',
    )
    expect(fault({ inputTokens: 4, outputTokens: 5 }, 'model_call', { maxTotalTokens: 9 })).toBeUndefined()
    expect(fault({ inputTokens: 4 }, 'model_call', { maxTotalTokens: 9 })).toContain('does not bound')
    // Sums of dollars are rounded.
    expect(fault({ costUsd: 2 + 1e-9 }, 'model_call', { maxCostUsd: 2 })).toBeUndefined()
    expect(fault({ costUsd: 2 + 1e-8 }, 'model_call', { maxCostUsd: 2 })).toContain('are granted')
  })
})

describe('what a child run is granted', () => {
  const limits: Limits = { maxTurns: 12, maxToolCalls: 11, onLimit: 'stop' }
  const grantOf = (calls: readonly Partial<Call>[], more: Limits = limits): unknown => {
    const state = working(calls, { limits: more })
    return grantChild(state, state.at)
  }
  const child = { child: 'clerk' } as const

  it('is an even share of all that is left beside what its parent needs', () => {
    expect(grantOf([child])).toEqual({ turns: 10, toolCalls: 10 })
    expect(grantOf([child, child])).toEqual({ turns: 5, toolCalls: 4 })
    expect(grantOf([child, {}])).toEqual({ turns: 10, toolCalls: 9 })
    expect(grantOf([child, { status: 'awaiting_approval' }, { status: 'to_ask', ...child }])).toEqual({
      turns: 5,
      toolCalls: 4,
    })
    expect(grantOf([child, started, settled()])).toEqual({ turns: 10, toolCalls: 10 })
    expect(grantOf([child], {})).toEqual({})
    expect(grantOf([child], { maxCostUsd: 0.3, onLimit: 'stop' })).toEqual({ costUsd: 0.3 })
  })

  it.each<readonly [Limits, string | undefined]>([
    [{ maxTurns: 2 }, 'maxTurns'],
    [{ maxTurns: 3 }, undefined],
    [{ maxToolCalls: 1 }, undefined],
    [{ maxTotalTokens: 31 }, 'maxTotalTokens'],
    [{ maxTotalTokens: 32 }, undefined],
    [{ maxTotalInputTokens: 15 }, 'maxTotalInputTokens'],
    [{ maxTotalInputTokens: 16 }, undefined],
    [{ maxTotalOutputTokens: 15 }, 'maxTotalOutputTokens'],
    [{ maxTotalOutputTokens: 16 }, undefined],
    [{ maxCostUsd: 0 }, 'maxCostUsd'],
  ])('is something that is worth a start: %o leaves too little of %s', (own, limit) => {
    const grant = grantOf([child], { onLimit: 'stop', ...own })
    expect((grant as { readonly limit?: string }).limit).toBe(limit)
  })

  it('has the time of its parent', () => {
    const timed: Limits = { maxDurationMs: 10_000, onLimit: 'stop' }
    const state = working([child], { limits: timed })
    const upAt = state.startedAt + state.waitedMs + 10_000
    expect(grantChild(state, upAt - 1)).toEqual({ durationMs: 1 })
    expect(grantChild(state, upAt)).toEqual({ limit: 'maxDurationMs' })
  })

  it('bounds its own limits, and its grace time is shorter than that of its parent', () => {
    const grant: Grant = { turns: 5, toolCalls: 4, tokens: 90, durationMs: 1_000 }
    expect(limitChild(grant, { maxTurns: 3, maxRepeats: 2 }, {})).toEqual({
      ...{
        maxTurns: 3,
        maxRepeats: 2,
        maxToolCalls: 4,
        maxTotalTokens: 90,
        maxDurationMs: 1_000,
        graceMs: 1_500,
      },
    })
    expect(limitChild({}, { graceMs: 90 }, { graceMs: 1_000 })).toEqual({ graceMs: 90 })
    expect(limitChild({ durationMs: 50 }, { maxDurationMs: 40, graceMs: 900 }, { graceMs: 1_001 })).toEqual({
      ...{ maxDurationMs: 40, graceMs: 750 },
    })
  })

  it('counts whole where its own totals cannot be had', () => {
    const whole = (grant: Grant) => {
      const state = working([{ ...started, ...child, grant }])
      return assumeChildTotals(state, state.calls[0]!)
    }
    const of = { runId: deriveChildRunId(runId, callId(1)) }
    expect(whole({})).toEqual({
      ...{ ...of, turns: 0, toolCalls: 0, usage: { inputTokens: 0, outputTokens: 0 }, estimated: true },
    })
    expect(whole({ turns: 2, toolCalls: 3, tokens: 90, costUsd: 0.5 })).toEqual({
      ...{ ...of, turns: 2, toolCalls: 3, usage: { inputTokens: 90, outputTokens: 0 }, costUsd: 0.5 },
      estimated: true,
    })
    expect(whole({ tokens: 90, outputTokens: 20 }).usage).toEqual({ inputTokens: 70, outputTokens: 20 })
    expect(whole({ tokens: 9, outputTokens: 20 }).usage).toEqual({ inputTokens: 0, outputTokens: 20 })
    expect(whole({ tokens: 90, inputTokens: 5 }).usage).toEqual({ inputTokens: 5, outputTokens: 85 })
    expect(whole({ inputTokens: 5 }).usage).toEqual({ inputTokens: 5, outputTokens: 0 })
  })

  it('counts whole where it has not ended, and no less than it has used', () => {
    const left = (grant: Grant, known?: ChildTotals) =>
      assumeChildTotals({ runId }, { toolCallId: callId(1), grant }, known)
    const of = { runId: deriveChildRunId(runId, callId(1)) }
    const known = {
      ...of,
      turns: 1,
      toolCalls: 2,
      usage: { inputTokens: 60, outputTokens: 20, webSearches: 1 },
    }
    expect(left({ turns: 3 })).toEqual({
      ...{ ...of, turns: 3, toolCalls: 0, usage: { inputTokens: 0, outputTokens: 0 }, estimated: true },
    })
    expect(left({}, known)).toEqual({ ...known, estimated: true })
    expect(left({ turns: 3, toolCalls: 1, tokens: 100, costUsd: 2 }, { ...known, costUsd: 0.5 })).toEqual({
      ...{ ...of, turns: 3, toolCalls: 2, costUsd: 2, estimated: true },
      // Both together are what was granted, and not more.
      usage: { inputTokens: 80, outputTokens: 20, webSearches: 1 },
    })
    expect(left({ costUsd: 0.1 }, { ...known, costUsd: 0.5 })).toMatchObject({ costUsd: 0.5 })
    expect(left({ inputTokens: 90, outputTokens: 30 }, known).usage).toMatchObject({
      ...{ inputTokens: 90, outputTokens: 30 },
    })
  })
})

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
