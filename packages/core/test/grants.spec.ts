import { describe, expect, it } from 'vitest'
import {
  agentTool,
  childRunIdOf,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Ledger,
  type Limits,
  type Prices,
  type RunResult,
  type RuntimeEvent,
  type Tool,
  type UserPart,
} from '@tallystick/core'
import {
  checkBudgets,
  manualClock,
  scriptedModel,
  settle,
  testTool,
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
} from '@tallystick/core/testing'
import { ofType, recorded } from './stage.ts'

const prices: Prices = {
  cheap: { inputUsd: 1, outputUsd: 10 },
  dear: { inputUsd: 1_000, outputUsd: 10_000 },
  half: { inputUsd: 10, outputUsd: 0 },
}

/** A model that bills what a vendor would: a token for four characters of input, and all of the output it may write. */
function billing(steps: readonly ScriptedReply[], modelId = 'cheap', most = 8_000): ScriptedModel {
  return scriptedModel(
    steps.map((reply): ScriptedStep => (request) => {
      const text = JSON.stringify([request.instructions, request.messages, request.tools])
      const outputTokens = Math.min(request.maxOutputTokens ?? most, most)
      return { usage: { inputTokens: Math.ceil(text.length / 8), outputTokens }, ...reply }
    }),
    modelId,
  )
}

const look = { toolCalls: [{ name: 'look', input: {} }] } as const
const counting = (name = 'look', effect: 'read' | 'write' = 'read'): Tool => {
  let count = 0
  return testTool({ name, effect, run: () => `${name} ${++count}` })
}

interface Played {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  readonly all: readonly (readonly RuntimeEvent[])[]
}

async function play(
  options: Partial<AgentOptions> & { readonly model: AgentOptions['model'] },
  input: string | readonly UserPart[] = 'Spend.',
  ledger: Ledger = memoryLedger(),
): Promise<Played> {
  const clock = manualClock()
  const agent = defineAgent({ name: 'spender', instructions: 'Go.', ...options })
  const runtime = createRuntime({ ledger, agents: [agent], prices, host: { clock, random: () => 0 } })
  const run = runtime.run(agent, input)
  const result = await settle(clock, run.result)
  const all = await everything(ledger)
  expect(checkBudgets(all)).toEqual([])
  return { result, events: await recorded(ledger, run.id), all }
}

async function everything(ledger: Ledger): Promise<readonly (readonly RuntimeEvent[])[]> {
  const found: (readonly RuntimeEvent[])[] = []
  for await (const { runId } of ledger.runs()) found.push(await recorded(ledger, runId))
  return found
}

const modelCalls = (events: readonly RuntimeEvent[]): number => ofType(events, 'model_call_started').length

describe('a grant', () => {
  it('stands on record before each model call, with the price of the model that is called', async () => {
    const { events } = await play({
      ...{ model: billing([look, { text: 'Done.' }]), tools: [counting()] },
      limits: { costMaxUsd: 1 },
    })
    for (const { grant, maxOutputTokens } of ofType(events, 'model_call_started')) {
      expect(grant.outputTokens).toBe(maxOutputTokens)
      expect(grant.costUsd).toBeCloseTo(((grant.inputTokens ?? 0) + 10 * (maxOutputTokens ?? 0)) / 1e6, 9)
    }
  })

  it('bounds the money of a call whose output is free', async () => {
    for (const onLimit of ['stop', 'finalize'] as const) {
      const { result, events } = await play({
        model: billing([look, { text: 'Done.' }], 'half'),
        tools: [counting()],
        limits: { costMaxUsd: 0.1, onLimit },
      })
      expect(result.status).toBe('done')
      for (const { grant } of ofType(events, 'model_call_started')) {
        expect(grant.costUsd).toBeGreaterThan(0)
        expect(grant.costUsd).toBeLessThanOrEqual(0.1)
      }
    }
  })

  it('holds the closing call to what is left of the money', async () => {
    const steps = [...Array.from({ length: 9 }, () => look), { text: 'Done.' }]
    const { result } = await play({
      ...{ model: billing(steps), tools: [counting()], limits: { costMaxUsd: 0.01 } },
    })
    expect(result.reason).toBe('cost_limit')
    expect(result.cost).toBeLessThanOrEqual(0.01)
  })

  it('holds every attempt of the closing call, on every model that takes over', async () => {
    const failing = Array.from({ length: 4 }, (): ScriptedReply => ({ text: 'x', fail: 'overloaded' }))
    const { result, events } = await play({
      ...{ model: billing([look, ...failing]), tools: [counting()], limits: { tokensMax: 4_000 } },
      fallbacks: [billing(failing, 'second'), billing(failing, 'third')],
    })
    expect(result.reason).toBe('token_limit')
    expect(modelCalls(events)).toBeLessThan(4)
    const { inputTokens = 0, outputTokens = 0 } = result.usage
    expect(inputTokens + outputTokens).toBeLessThanOrEqual(4_000)
  })

  it('of a model that takes over is at its own price', async () => {
    const { result, events } = await play({
      model: scriptedModel(
        [...Array.from({ length: 4 }, (): ScriptedStep => ({ fail: 'overloaded' })), { text: 'Cheap.' }],
        'cheap',
      ),
      ...{ fallbacks: [billing([{ text: 'Dear.' }], 'dear')], limits: { costMaxUsd: 0.01 } },
    })
    expect(result.cost ?? 0).toBeLessThanOrEqual(0.01)
    expect(ofType(events, 'model_call_started').some(({ model }) => model.modelId === 'dear')).toBe(false)
    expect(result.reason).toBe('cost_limit')
  })

  it('of a model that prepareTurn names is at its own price', async () => {
    const dear = billing([{ text: 'Dear.' }], 'dear')
    const { result, events } = await play({
      ...{ model: billing([{ text: 'Cheap.' }]), fallbacks: [dear], limits: { costMaxUsd: 0.01 } },
      prepareTurn: () => ({ model: { provider: 'scripted', api: 'script', modelId: 'dear' } }),
    })
    expect(result.cost ?? 0).toBeLessThanOrEqual(0.01)
    expect(ofType(events, 'model_call_started').map(({ model }) => model.modelId)).not.toContain('dear')
  })

  it('takes all input for written to the cache, which may cost more', async () => {
    const usage = { inputTokens: 700, cacheWriteTokens: 700, outputTokens: 100 }
    const model = scriptedModel([{ text: 'Done.', usage }], 'caching')
    const clock = manualClock()
    const agent = defineAgent({ name: 'a', instructions: 'x'.repeat(2_400), model })
    const ledger = memoryLedger()
    const caching = { inputUsd: 1, outputUsd: 1, cacheWriteUsd: 100 }
    const runtime = createRuntime({ ledger, agents: [agent], prices: { caching }, host: { clock } })
    const run = runtime.run(agent, 'Go.', { limits: { costMaxUsd: 0.01 } })
    expect(await settle(clock, run.result)).toMatchObject({ reason: 'cost_limit', text: '' })
    expect(model.requests).toHaveLength(0)
  })

  it('estimates ideographs and documents by what they are', async () => {
    const dense = scriptedModel([{ text: 'Done.', usage: { inputTokens: 9_000, outputTokens: 10 } }], 'cheap')
    const text = '語'.repeat(9_000)
    const cjk = await play({ model: dense, limits: { costMaxUsd: 0.01 } }, text)
    expect(cjk.result).toMatchObject({ reason: 'cost_limit', text: '' })
    const paid = { inputTokens: 120_000, outputTokens: 10 }
    const reading = scriptedModel([{ text: 'Done.', usage: paid }], 'cheap')
    const pdf: UserPart = { type: 'file', mediaType: 'application/pdf', data: 'A'.repeat(1_000_000) }
    const document = await play({ model: reading, limits: { costMaxUsd: 0.05 } }, [pdf])
    expect(document.result).toMatchObject({ reason: 'cost_limit', text: '' })
    expect([...dense.requests, ...reading.requests]).toEqual([])
  })

  it('learns from what providers report how far estimates fall short', async () => {
    const dense = (inputTokens: number): ScriptedReply => ({
      ...look,
      usage: { inputTokens, outputTokens: 5 },
    })
    const wordy = testTool({ name: 'look', run: () => 'x'.repeat(3_500) })
    const { events } = await play({
      model: scriptedModel(
        [dense(60), dense(4_100), { text: 'Done.', usage: { inputTokens: 8_300 } }],
        'cheap',
      ),
      ...{ tools: [wordy], limits: { tokensMax: 1_000_000, repeatsMax: 9 } },
    })
    const inputs = ofType(events, 'model_call_started').map(({ grant }) => grant.inputTokens ?? 0)
    // The second result is as long as the first, of which the provider made four times as many tokens.
    expect(inputs[1]).toBeLessThan(1_200)
    expect(inputs[2]).toBeGreaterThan(8_000)
  })
})

describe('what a provider reports', () => {
  const bounded = (reply: ScriptedReply, limits: Limits = { tokensMax: 2_000 }): Promise<Played> =>
    play({
      model: scriptedModel([...Array.from({ length: 13 }, () => ({ ...reply, ...look })), { text: 'Done.' }]),
      ...{ tools: [counting()], limits: { turnsMax: 30, ...limits } },
    })

  it('is estimated where it reports nothing, and marked so', async () => {
    const { result, events } = await bounded({ text: 'So many words. '.repeat(20) })
    expect(result.reason).toBe('token_limit')
    expect(modelCalls(events)).toBeLessThan(10)
    expect(ofType(events, 'usage_updated')[0]).toMatchObject({ estimated: ['inputTokens', 'outputTokens'] })
  })

  it('is refused where it is no count, and counts by the largest where it falls', async () => {
    const lies = [-500, 1e308, 0.5, Number.MAX_SAFE_INTEGER]
    for (const inputTokens of lies) {
      const { events, result } = await bounded({ usage: { inputTokens, outputTokens: 5 } })
      expect(ofType(events, 'usage_updated')[0]).toMatchObject({ refused: ['inputTokens'] })
      expect(result.usage.inputTokens).toBeGreaterThan(0)
      expect(result.usage.inputTokens).toBeLessThanOrEqual(2_000)
    }
  })

  it('never bricks a run: a cost without end is refused, and the run ends', async () => {
    const { result } = await play({
      model: scriptedModel([{ text: 'Done.', usage: { inputTokens: 1e308, outputTokens: 1e308 } }], 'dear'),
      limits: { costMaxUsd: 1_000 },
    })
    expect(result).toMatchObject({ status: 'done', reason: 'answered' })
    expect(Number.isFinite(result.cost)).toBe(true)
  })

  it('is not believed where it says that text cost nothing', async () => {
    const usage = { inputTokens: 0, outputTokens: 0 }
    const { events } = await bounded({ text: 'So many words. '.repeat(20), usage })
    expect(ofType(events, 'usage_updated')[1]).toMatchObject({ estimated: ['inputTokens', 'outputTokens'] })
  })

  it('is made up for when the stream is cut before it', async () => {
    const cut: ScriptedStep = { text: 'word '.repeat(400), fail: 'truncated' }
    const { result, events } = await play({
      model: scriptedModel(
        [cut, cut, cut, { text: 'Done.', usage: { inputTokens: 9, outputTokens: 2 } }],
        'cheap',
      ),
      limits: { costMaxUsd: 1 },
    })
    expect(result.reason).toBe('answered')
    expect(ofType(events, 'usage_updated').filter(({ estimated }) => estimated)).toHaveLength(3)
    // Three times some 570 tokens of output at 10 dollars a million.
    expect(result.cost).toBeGreaterThan(0.015)
  })
})

describe('the grant of a child run', () => {
  const helper = (model: ScriptedModel, options: Partial<AgentOptions> = {}): Agent =>
    defineAgent({ ...{ name: 'helper', description: 'Helps.', instructions: 'Help.' }, model, ...options })
  const ask = { name: 'helper', input: { task: 'Help.' } }

  it('is shared by a read and a write of one reply, and by what they do', async () => {
    const model = billing(
      Array.from({ length: 60 }, () => look),
      'cheap',
      100,
    )
    const worker = helper(model, { tools: [counting()], limits: { turnsMax: 50, repeatsMax: 99 } })
    const reading = { ...agentTool(worker, { effect: 'read' }) }
    const writing = { ...agentTool(worker, { effect: 'write' }), name: 'second' }
    const { result } = await play({
      model: billing([{ toolCalls: [ask, { ...ask, name: 'second' }] }, { text: 'Done.' }], 'cheap', 100),
      ...{ tools: [reading, writing], limits: { turnsMax: 11, tokensMax: 20_000 } },
    })
    expect(result.turns + result.children.turns).toBeLessThanOrEqual(11)
    expect(result.children.runs).toBe(2)
  })

  it('leaves enough for the calls that wait beside it', async () => {
    const model = billing(
      Array.from({ length: 60 }, () => look),
      'cheap',
      50,
    )
    const worker = helper(model, { tools: [counting()], limits: { repeatsMax: 99 } })
    const calls = [ask, ...Array.from({ length: 3 }, () => ({ name: 'save', input: {} }))]
    const { result, events } = await play({
      model: billing([{ toolCalls: calls }, { text: 'Done.' }], 'cheap', 50),
      tools: [agentTool(worker, { effect: 'write' }), counting('save', 'write')],
      limits: { toolCallsMax: 6, repeatsMax: 99 },
    })
    expect(result.toolCalls + result.children.toolCalls).toBeLessThanOrEqual(6)
    const saved = ofType(events, 'tool_result').filter(({ name }) => name === 'save')
    expect(saved.map(({ outcome }) => outcome)).toEqual(['success', 'success', 'success'])
  })

  it('is out of reach for a child that starts while the first is at work', async () => {
    let free = (): void => {}
    const until = new Promise<void>((resolve) => (free = resolve))
    const usage = { inputTokens: 100, outputTokens: 10 }
    const slow = helper(scriptedModel([{ text: 'Slow.', usage, until }], 'cheap'))
    let done = 0
    const quick = helper(
      scriptedModel(
        Array.from({ length: 2 }, (): ScriptedStep => () => {
          if (++done === 2) free()
          return { text: 'Quick.', usage }
        }),
        'cheap',
      ),
      { name: 'quick' },
    )
    const calls = [ask, { ...ask, name: 'quick' }, { ...ask, name: 'quick' }]
    const { events } = await play({
      model: scriptedModel(
        [
          { toolCalls: calls, usage },
          { text: 'Done.', usage },
        ],
        'cheap',
      ),
      tools: [agentTool(slow, { effect: 'read' }), agentTool(quick, { effect: 'write' })],
      limits: { tokensMax: 6_000, costMaxUsd: 1, turnsMax: 14, toolCallsMax: 14 },
    })
    const grants = ofType(events, 'tool_started').map(({ grant }) => grant)
    expect(grants).toHaveLength(3)
    // The third has what the second gave back, and nothing of what the first holds.
    expect(grants[2]?.tokens).toBeGreaterThan(grants[1]?.tokens ?? Infinity)
    expect((grants[2]?.tokens ?? 0) + (grants[0]?.tokens ?? 0)).toBeLessThan(6_000 - 2 * 110)
  })

  it('that nothing is left for starts no child', async () => {
    const worker = helper(
      billing(
        Array.from({ length: 99 }, () => ({ text: 'Helped.' })),
        'dear',
        20,
      ),
    )
    const { result, events } = await play({
      model: billing([{ toolCalls: Array.from({ length: 40 }, () => ask) }, { text: 'Done.' }], 'cheap', 60),
      ...{ tools: [agentTool(worker)], limits: { costMaxUsd: 0.008, repeatsMax: 99 } },
    })
    expect(result.cost).toBeLessThanOrEqual(0.008)
    const outcomes = ofType(events, 'tool_result').map(({ outcome }) => outcome)
    expect(outcomes).toHaveLength(40)
    expect(result.children.turns).toBe(0)
  })

  it('counts what a child had used that was left behind', async () => {
    const slow = scriptedModel(
      [{ text: 'Thinking', usage: { inputTokens: 300, outputTokens: 40 }, hang: true }],
      'cheap',
    )
    const clock = manualClock()
    const worker = helper(slow, { limits: { graceMs: 0 } })
    const usage = { inputTokens: 40, outputTokens: 2 }
    const deaf: Tool = { ...testTool({ name: 'wait', run: () => new Promise(() => {}) }) }
    const parent = defineAgent({
      ...{
        name: 'parent',
        instructions: 'Go.',
        model: scriptedModel([{ toolCalls: [ask], usage }], 'cheap'),
      },
      ...{ tools: [agentTool(worker), deaf], limits: { costMaxUsd: 1, graceMs: 0 } },
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [parent, worker], prices, host: { clock } })
    const run = runtime.run(parent, 'Go.')
    let told = false
    const watch = async (): Promise<void> => {
      for await (const event of run) {
        if (event.type !== 'tool_started' || told) continue
        told = true
        const child = runtime.resume(event.child!)
        child.events$.subscribe(({ type }) => type === 'usage_updated' && void run.cancel('enough'))
      }
    }
    void watch()
    const result = await settle(clock, run.result)
    expect(result.reason).toBe('cancelled')
    expect(result.usage).toMatchObject({ inputTokens: 340, outputTokens: 42 })
  })

  it('has the time that its parent has, whatever the clock says meanwhile', async () => {
    const clock = manualClock()
    const hours = 3 * 3_600_000
    const worker = helper(scriptedModel([{ text: 'Helped.' }], 'cheap'))
    const agent = defineAgent({
      ...{
        name: 'parent',
        instructions: 'Go.',
        tools: [agentTool(worker)],
        limits: { durationMaxMs: 60_000 },
      },
      model: scriptedModel([{ toolCalls: [ask] }, { text: 'Done.' }], 'cheap'),
    })
    // The clock on the wall is set back by three hours behind the first model call.
    let back = 0
    const wall = { ...clock, now: () => clock.now() - back }
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock: wall } })
    const run = runtime.run(agent, 'Go.')
    run.events$.subscribe(({ type }) => {
      if (type === 'assistant_message_finished') back = hours
    })
    await settle(clock, run.result)
    const [started] = ofType(await recorded(ledger, run.id), 'tool_started')
    expect(started?.grant?.durationMs).toBeLessThanOrEqual(60_000)
    const below = await recorded(ledger, childRunIdOf(run.id, started!.toolCallId))
    expect(ofType(below, 'run_started')[0]?.limits.durationMaxMs).toBeLessThanOrEqual(60_000)
  })
})
