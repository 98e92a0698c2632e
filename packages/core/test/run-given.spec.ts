// What a run is given over its agents: on record, the same after a resume elsewhere, and in every request.
import { describe, expect, it } from 'vitest'
import {
  type Agent,
  agentTool,
  ConfigurationError,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunOptions,
} from '@tallystick/core'
import { deriveRunId } from '@tallystick/core/internal'
import {
  mortalLedger,
  scriptedModel,
  seededRandom,
  testTool,
  waitUntilSettled,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded, stage as stageOf, type Stage, type StageOptions } from './stage.ts'

let processes = 0
const stage = (options: StageOptions = {}): Stage =>
  stageOf({ random: seededRandom(++processes), ...options })
const look = testTool({ name: 'look', run: () => 'seen' })
const asks = { toolCalls: [{ name: 'look', input: {} }] }
const looks: readonly ScriptedStep[] = [asks, asks, { text: 'Done.' }]

async function play(set: Stage, options: RunOptions) {
  const run = set.runtime.run(set.agent, 'Go.', options)
  const result = await set.waitUntilSettled(run.result)
  const events = checkedRun(await set.eventsOf(run))
  return { result, events, started: ofType(events, 'run_started')[0]! }
}

describe('labels of a run', () => {
  const labels = {
    workflowName: 'refunds',
    traceId: 'trace_1',
    groupId: 'chat_1',
    tags: ['eu'],
    metadata: { plan: 'pro' },
  }

  it('are on record, in its state, and in its child runs; no model is shown them', async () => {
    const helper = defineAgent({
      name: 'helper',
      description: 'Helps.',
      instructions: 'Help.',
      model: scriptedModel([{ text: 'Helped.' }]),
    })
    const set = stage({
      tools: [agentTool(helper)],
      steps: [{ toolCalls: [{ name: 'helper', input: { task: 'x' } }] }, { text: 'Done.' }],
    })
    const { started, events } = await play(set, labels)
    expect(started.labels).toEqual(labels)
    const child = ofType(events, 'tool_started')[0]!.child!
    expect(ofType(await recorded(set.ledger, child), 'run_started')[0]?.labels).toEqual(labels)
    expect(JSON.stringify(set.model.requests)).not.toContain('refunds')
    const plain = await play(stage(), {})
    expect(plain.started).not.toHaveProperty('labels')
  })
})

describe('the choice of tools', () => {
  const choices = async (toolChoice: RunOptions['toolChoice']) => {
    const set = stage({ tools: [look], steps: looks })
    await play(set, { toolChoice })
    return set.model.requests.map((request) => request.toolChoice)
  }

  it('asks for a call in the first turn alone, and forbids calls in each', async () => {
    const auto = { type: 'auto' }
    expect(await choices('any')).toEqual([{ type: 'any' }, auto, auto])
    const named = { type: 'tool', name: 'look' } as const
    expect(await choices(named)).toEqual([named, auto, auto])
    expect(await choices('auto')).toEqual([auto, auto, auto])
    const set = stage({ tools: [look], steps: [{ text: 'Done.' }, { text: 'Again.' }] })
    const run = set.runtime.run(set.agent, 'Go.', { toolChoice: 'none' })
    void run.queue('And?')
    await set.waitUntilSettled(run.result)
    expect(set.model.requests.map(({ toolChoice }) => toolChoice.type)).toEqual(['none', 'none'])
  })

  it('names a tool that the agent has', () => {
    const set = stage({ tools: [look] })
    const wrong = { toolChoice: { type: 'tool', name: 'lok' } } as const
    expect(() => set.runtime.run(set.agent, 'Go.', wrong)).toThrow('names the tool lok')
    const sourced = stage({ toolSource: { tools: [] } })
    expect(() => sourced.runtime.run(sourced.agent, 'Go.', wrong)).not.toThrow()
  })

  it('yields to what a turn is prepared with', async () => {
    const set = stage({
      tools: [look],
      steps: [{ text: 'Done.' }],
      prepareTurn: () => ({ toolChoice: { type: 'none' } }),
    })
    await play(set, { toolChoice: 'any' })
    expect(set.model.requests[0]?.toolChoice).toEqual({ type: 'none' })
  })
})

it('several tools in one reply may be allowed or forbidden over the agent', async () => {
  const set = stage({ tools: [look], steps: [...looks, { text: 'Done.' }] })
  await play(set, { parallelToolCalls: false })
  await play(set, {})
  expect(set.model.requests.map(({ parallelToolCalls }) => parallelToolCalls)).toEqual([
    ...[false, false, false],
    true,
  ])
})

describe('a model that a run is given', () => {
  const ask = testTool({ name: 'look', check: () => ({ kind: 'ask' }) })

  function office() {
    const own = scriptedModel([], 'own')
    const second = scriptedModel([{ text: 'From the second.' }], 'second')
    const billing = defineAgent({
      name: 'billing',
      instructions: 'Bill.',
      model: own,
      tools: [ask],
      fallbacks: [second],
    })
    const desk = defineAgent({ name: 'desk', instructions: 'Greet.', model: own, handoffs: [billing] })
    return { desk, billing, own, second }
  }
  const toBilling = { toolCalls: [{ name: 'transfer_to_billing', input: {} }] }

  it('answers for each agent of it, and is called again where another process resumes it', async () => {
    const { desk, own } = office()
    const given = scriptedModel([toBilling, asks, { text: 'Billed.' }], 'given')
    const set = stage()
    const run = set.runtime.run(desk, 'Go.', { model: given, modelSettings: { seed: 3 } })
    const rest = await set.waitUntilSettled(run.result)
    expect(rest).toMatchObject({ status: 'suspended', agent: 'billing' })
    const { ledger, clock } = set
    const again = office()
    const other = createRuntime({ ledger, agents: [again.desk], models: [given], host: { clock } })
    const resumed = other.resume(run.id)
    await set.waitUntilSettled(resumed.approve(rest.pendingApprovals[0]!, { by: 'ada' }))
    expect((await set.waitUntilSettled(resumed.result)).text).toBe('Billed.')
    expect([given, own, again.own].map(({ requests }) => requests.length)).toEqual([3, 0, 0])
    const events = checkedRun(await set.eventsOf(run))
    expect(ofType(events, 'run_resumed').map(({ definition }) => definition)).toEqual([undefined])
    const named = ofType(events, 'model_call_started').map(({ model }) => model.modelId)
    expect(named).toEqual(['given', 'given', 'given'])
    expect(given.requests.map(({ modelSettings }) => modelSettings?.seed)).toEqual([3, 3, 3])
  })

  it('is asked for where a resume cannot find it, and must be the same', async () => {
    const { desk } = office()
    const given = scriptedModel([toBilling, asks, { text: 'Billed.' }], 'given')
    const set = stage()
    const run = set.runtime.run(desk, 'Go.', { model: given })
    await set.waitUntilSettled(run.result)
    const elsewhere = () =>
      createRuntime({
        ledger: set.ledger,
        agents: [office().desk],
        host: { clock: set.clock, report: () => {} },
      })
    const refused = async (options: object): Promise<string> =>
      await set.waitUntilSettled(elsewhere().resume(run.id, options).result).then(
        () => 'resumed',
        (error: unknown) => (error instanceof ConfigurationError ? error.message : 'another error'),
      )
    expect(await refused({})).toContain('which this runtime does not know')
    expect(await refused({ model: scriptedModel([], 'other') })).toContain('other was given to continue with')
    expect(await refused({ model: given })).toBe('resumed')
  })

  it('is followed by the fallbacks of the agent, and named once', async () => {
    const { billing, second } = office()
    const given = scriptedModel([{ fail: 'invalid_request' }, { fail: 'authentication' }], 'given')
    const set = stage()
    const failed = { fail: 'authentication' } as const
    const broken = scriptedModel([failed], 'given')
    const run = set.runtime.run(billing, 'Go.', { model: broken })
    expect((await set.waitUntilSettled(run.result)).text).toBe('From the second.')
    expect(second.requests).toHaveLength(1)
    const [started] = ofType(await set.eventsOf(run), 'run_started')
    expect(started?.definition.fallbacks).toHaveLength(1)
    const itself = set.runtime.run(billing, 'Go.', { model: second })
    await set.waitUntilSettled(itself.result)
    const [alone] = ofType(await set.eventsOf(itself), 'run_started')
    expect(alone?.definition.fallbacks).toBeUndefined()
    expect(alone?.definition.model.modelId).toBe('second')
    expect(given.requests).toEqual([])
  })

  it('has the price of its name, without which money is not limited', async () => {
    const { desk } = office()
    const set = stage()
    const prices = { own: { inputUsd: 1, outputUsd: 1 }, second: { inputUsd: 1, outputUsd: 1 } }
    const { ledger, clock } = set
    const runtime = createRuntime({ ledger, prices, host: { clock } })
    const model = scriptedModel([{ text: 'x' }], 'given')
    const limits = { maxCostUsd: 1 }
    expect(() => runtime.run(desk, 'Go.', { model, limits })).toThrow('given has no price')
    const priced = createRuntime({
      ledger,
      prices: { ...prices, given: { inputUsd: 2, outputUsd: 2 } },
      host: { clock },
    })
    const run = priced.run(desk, 'Go.', { model, limits })
    await set.waitUntilSettled(run.result)
    const [started] = ofType(await set.eventsOf(run), 'run_started')
    expect(started?.definition.price).toEqual({ inputUsd: 2, outputUsd: 2 })
  })

  it('has as many searches of the web as it may make on record, where it makes any', async () => {
    const given: unknown[] = []
    for (const maxWebSearches of [0, 1, 'unbounded'] as const) {
      const set = stage()
      const model = Object.assign(scriptedModel([{ text: 'Done.' }], 'given'), { maxWebSearches })
      const run = set.runtime.run(office().desk, 'Go.', { model })
      await set.waitUntilSettled(run.result)
      const [started] = ofType(await set.eventsOf(run), 'run_started')
      expect(started?.definition.maxWebSearches).toBe(started?.givenModel?.maxWebSearches)
      given.push(started?.givenModel?.maxWebSearches)
    }
    expect(given).toEqual([undefined, 1, 'unbounded'])
  })
})

describe('a signal', () => {
  it('cancels the run, before its first call and during it, with the reason on record', async () => {
    const set = stage({ tools: [testTool({ name: 'look', run: () => new Promise<never>(() => {}) })] })
    const aborted = await play(set, { signal: AbortSignal.abort('too late') })
    expect(aborted.result.reason).toBe('cancelled')
    expect(ofType(aborted.events, 'cancel_requested')).toMatchObject([{ reason: 'too late' }])
    expect(set.model.requests).toEqual([])

    const controller = new AbortController()
    const during = stage({
      tools: [
        testTool({
          name: 'look',
          run: () => {
            controller.abort(new Error('gone'))
            return new Promise<never>(() => {})
          },
        }),
      ],
      steps: looks,
    })
    const { result, events } = await play(during, { signal: controller.signal })
    expect(result.reason).toBe('cancelled')
    expect(ofType(events, 'cancel_requested')).toMatchObject([{ reason: 'gone' }])
    expect(ofType(events, 'tool_result')).toMatchObject([{ outcome: 'cancelled' }])
  })

  it('is let go of when the run has ended', async () => {
    const listeners = new Set<() => void>()
    const signal = {
      aborted: false,
      addEventListener: (_type: 'abort', listener: () => void) => void listeners.add(listener),
      removeEventListener: (_type: 'abort', listener: () => void) => void listeners.delete(listener),
    }
    const set = stage()
    const run = set.runtime.run(set.agent, 'Go.', { signal })
    expect(listeners.size).toBe(1)
    await set.waitUntilSettled(run.result)
    expect(listeners.size).toBe(0)
  })
})

describe('an idempotency key', () => {
  const key = { idempotencyKey: 'order 7' }
  const runsOf = async (ledger: Ledger): Promise<number> => {
    const runs = await Array.fromAsync(ledger.runs({}))
    return runs.length
  }
  const again = (set: Stage, agent: Agent = set.agent) =>
    createRuntime({
      ledger: set.ledger,
      agents: [agent],
      host: { clock: set.clock, report: () => {} },
    })

  it('begins one run, in one process and in several, while it is under way and after its end', async () => {
    const set = stage({ tools: [look], steps: looks })
    const one = set.runtime.run(set.agent, 'Go.', key)
    const same = set.runtime.run(set.agent, 'Go.', key)
    const elsewhere = again(set).run(set.agent, 'Go.', key)
    const results = await set.waitUntilSettled(Promise.all([one.result, same.result, elsewhere.result]))
    const later = await set.waitUntilSettled(again(set).run(set.agent, 'Go.', key).result)
    expect([...results, later].map(({ runId, text }) => [runId, text])).toEqual(
      [1, 2, 3, 4].map(() => [deriveRunId('order 7'), 'Done.']),
    )
    expect(set.model.requests).toHaveLength(3)
    expect(await runsOf(set.ledger)).toBe(1)
    const events = checkedRun(await set.eventsOf(one))
    expect(ofType(events, 'run_started')).toMatchObject([key])
    const seen: number[] = []
    for await (const { seq } of elsewhere) seen.push(seq)
    expect(seen).toEqual(events.map(({ seq }) => seq))
  })

  it('gives the run that waits for a person, which its new holder may answer', async () => {
    const asking = testTool({ name: 'look', check: () => ({ kind: 'ask' }) })
    const set = stage({ tools: [asking], steps: [asks, { text: 'Done.' }] })
    const rest = await set.waitUntilSettled(set.runtime.run(set.agent, 'Go.', key).result)
    const held = again(set).run(set.agent, 'Go.', key)
    const found = await set.waitUntilSettled(held.result)
    expect(found).toMatchObject({ status: 'suspended', runId: rest.runId })
    await set.waitUntilSettled(held.approve(found.pendingApprovals[0]!, { by: 'ada' }))
    expect((await set.waitUntilSettled(held.result)).text).toBe('Done.')
    expect(await runsOf(set.ledger)).toBe(1)
  })

  it('takes up the run of a process that has died', async () => {
    const ledger = memoryLedger()
    const mortal = mortalLedger(ledger, { append: 3, stored: true })
    const set = stage({ ledger: mortal, tools: [look], steps: looks })
    await set.waitUntilSettled(set.runtime.run(set.agent, 'Go.', key).result).catch(() => {})
    expect(await runsOf(ledger)).toBe(1)
    const survivor = createRuntime({ ledger, agents: [set.agent], host: { clock: set.clock } })
    const result = await waitUntilSettled(set.clock, survivor.run(set.agent, 'Go.', key).result)
    expect(result.text).toBe('Done.')
    expect(await runsOf(ledger)).toBe(1)
  })

  it('belongs to one agent and one input', async () => {
    const set = stage()
    await set.waitUntilSettled(set.runtime.run(set.agent, 'Go.', key).result)
    const other = defineAgent({ name: 'other', instructions: 'Act.', model: set.model })
    const refusal = async (agent: Agent, input: string): Promise<string> =>
      await set.waitUntilSettled(again(set).run(agent, input, key).result).then(
        () => 'taken',
        (error: unknown) => (error as Error).message,
      )
    expect(await refusal(set.agent, 'Stop.')).toContain('with another input')
    expect(await refusal(other, 'Go.')).toContain('with another agent')
    expect(await refusal(set.agent, 'Go.')).toBe('taken')
  })

  it('is not that of a fork', async () => {
    const set = stage({ tools: [look], steps: [...looks, ...looks] })
    const run = set.runtime.run(set.agent, 'Go.', key)
    await set.waitUntilSettled(run.result)
    const fork = set.runtime.fork(run.id, { atSeq: 2 })
    await set.waitUntilSettled(fork.result)
    const [started] = ofType(await set.eventsOf(fork), 'run_started')
    expect(started).not.toHaveProperty('idempotencyKey')
  })
})
