import { describe, expect, it } from 'vitest'
import {
  type Agent,
  type AgentOptions,
  agentTool,
  createRuntime,
  defineAgent,
  type Ledger,
  type Limits,
  memoryLedger,
  type RuntimeEvent,
  type Tool,
  type Usage,
} from '@tallystick/core'
import { deriveChildRunId } from '@tallystick/core/vocabulary'
import {
  checkBudgets,
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedModel,
  type ScriptedStep,
} from '@tallystick/testkit'
import { billing, counting, look, play, prices } from './grants-stage.ts'
import { ofType, recorded } from './stage.ts'

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
    const worker = helper(model, { tools: [counting()], limits: { maxTurns: 50, maxRepeats: 99 } })
    const reading = { ...agentTool(worker, { effect: 'read' }) }
    const writing = { ...agentTool(worker, { effect: 'write' }), name: 'second' }
    const { result } = await play({
      model: billing([{ toolCalls: [ask, { ...ask, name: 'second' }] }, { text: 'Done.' }], 'cheap', 100),
      ...{ tools: [reading, writing], limits: { maxTurns: 11, maxTotalTokens: 20_000 } },
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
    const worker = helper(model, { tools: [counting()], limits: { maxRepeats: 99 } })
    const calls = [ask, ...Array.from({ length: 3 }, () => ({ name: 'save', input: {} }))]
    const { result, events } = await play({
      model: billing([{ toolCalls: calls }, { text: 'Done.' }], 'cheap', 50),
      tools: [agentTool(worker, { effect: 'write' }), counting('save', 'write')],
      limits: { maxToolCalls: 6, maxRepeats: 99 },
    })
    expect(result.toolCalls + result.children.toolCalls).toBeLessThanOrEqual(6)
    const saved = ofType(events, 'tool_result').filter(({ name }) => name === 'save')
    expect(saved.map(({ outcome }) => outcome)).toEqual(['success', 'success', 'success'])
  })

  it('leaves calls and shares for what a person has not decided yet', async () => {
    const worker = helper(billing([look], 'cheap', 50), { tools: [counting()] })
    const waits: Pick<Tool, 'check'> = { check: () => ({ kind: 'ask' }) }
    const tools = [
      agentTool(worker, { effect: 'read' }),
      { ...agentTool(worker, { effect: 'read' }), ...waits, name: 'later' },
      { ...counting('save', 'write'), ...waits },
    ]
    const calls = [ask, { ...ask, name: 'later' }, { name: 'save', input: {} }]
    const { result, events } = await play({
      ...{ model: billing([{ toolCalls: calls }], 'cheap', 50), tools, limits: { maxToolCalls: 11 } },
    })
    expect(result.pendingApprovals.map(({ name }) => name)).toEqual(['later', 'save'])
    // Of eleven calls three are those of this turn; the two child runs share the rest.
    expect(ofType(events, 'tool_started').map(({ grant }) => grant?.toolCalls)).toEqual([4])
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
      limits: { maxTotalTokens: 6_000, maxCostUsd: 1, maxTurns: 14, maxToolCalls: 14 },
    })
    const grants = ofType(events, 'tool_started').map(({ grant }) => grant)
    expect(grants).toHaveLength(3)
    // The third has what the second gave back, and nothing of what the first holds.
    expect(grants[2]?.tokens).toBeGreaterThan(grants[1]?.tokens ?? Infinity)
    expect((grants[2]?.tokens ?? 0) + (grants[0]?.tokens ?? 0)).toBeLessThan(6_000 - 2 * 110)
  })

  it('is kept within a budget of its own, where several work at the same time', async () => {
    const model = billing(
      Array.from({ length: 60 }, () => look),
      'cheap',
      50,
    )
    const worker = helper(model, {
      tools: [counting()],
      limits: { maxTurns: 9, maxRepeats: 99, maxToolCalls: 7 },
    })
    const budget = { maxTurns: 3, maxToolCalls: undefined, onLimit: 'stop' } as const
    const small = agentTool(worker, { effect: 'read', limits: budget })
    const whole = agentTool(worker, { effect: 'read', name: 'whole' })
    const { events, all } = await play({
      model: billing([{ toolCalls: [ask, ask, { ...ask, name: 'whole' }] }, { text: 'Done.' }], 'cheap', 50),
      ...{ tools: [small, whole], limits: { maxTurns: 60 } },
    })
    const started = ofType(events, 'tool_started')
    const children = started.map(({ runId, toolCallId }) => {
      const childId = deriveChildRunId(runId, toolCallId)
      return all.find(([first]) => first?.runId === childId) ?? []
    })
    const turns = children.map(
      (child) => new Set(ofType(child, 'model_call_started').map(({ turn }) => turn)).size,
    )
    expect(turns.slice(0, 2)).toEqual([3, 3])
    expect(turns[2]).toBeGreaterThan(3)
    // What the budget leaves open is as the agent says.
    const limits = children.map((child) => ofType(child, 'run_started')[0]?.limits)
    expect(limits.map((one) => [one?.maxTurns, one?.maxToolCalls, one?.onLimit])).toEqual([
      [3, 7, 'stop'],
      [3, 7, 'stop'],
      [9, 7, limits[2]?.onLimit],
    ])
    // They were at work at the same time.
    const results = ofType(events, 'tool_result')
    expect(Math.min(...results.map(({ seq }) => seq))).toBeGreaterThan(
      Math.max(...started.map(({ seq }) => seq)),
    )
  })

  it('refuses a budget that is not a limit', () => {
    const worker = helper(scriptedModel([]))
    expect(() => agentTool(worker, { limits: { maxTurns: -1 } })).toThrow('maxTurns')
    expect(() => agentTool(worker, { limits: 3 as never })).toThrow('limits')
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
      ...{ tools: [agentTool(worker)], limits: { maxCostUsd: 0.008, maxRepeats: 99 } },
    })
    expect(result.costUsd).toBeLessThanOrEqual(0.008)
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
      ...{ tools: [agentTool(worker), deaf], limits: { maxCostUsd: 1, graceMs: 0 } },
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [parent, worker], prices, host: { clock } })
    const run = runtime.run(parent, 'Go.')
    let reported = false
    const watch = async (): Promise<void> => {
      for await (const event of run) {
        if (event.type !== 'tool_started' || reported) continue
        reported = true
        const child = runtime.resume(event.child!)
        child.events$.subscribe(({ type }) => type === 'usage_updated' && void run.cancel('enough'))
      }
    }
    void watch()
    const result = await waitUntilSettled(clock, run.result)
    expect(result.reason).toBe('cancelled')
    expect(result.usage).toMatchObject({ inputTokens: 340, outputTokens: 42 })
  })

  it.each([
    ['with no limit', {}, { inputTokens: 380, outputTokens: 44 }],
    ['with a budget', { maxTotalInputTokens: 9_000, maxTotalOutputTokens: 900 }, {}],
  ])(
    'given a run at work two levels down, %s, when it is left behind, then all above count it',
    async (_, limits, usage) => {
      const clock = manualClock()
      const own = { inputTokens: 40, outputTokens: 2 }
      const digging = scriptedModel(
        [{ text: 'Digging', usage: { inputTokens: 300, outputTokens: 40 }, hang: true }],
        'cheap',
      )
      const asks = (name: string) => ({ toolCalls: [{ name, input: { task: 'Dig.' } }], usage: own })
      const level = (name: string, of: Tool[], model: ReturnType<typeof scriptedModel>, more: Limits = {}) =>
        defineAgent({
          ...{ name, description: 'Digs.', instructions: 'Go.', tools: of, model },
          limits: { graceMs: 0, ...more },
        })
      const digger = level('digger', [], digging)
      const foreman = level('foreman', [agentTool(digger)], scriptedModel([asks('digger')], 'cheap'))
      const owner = level('owner', [agentTool(foreman)], scriptedModel([asks('foreman')], 'cheap'), limits)
      const spentBelow = Promise.withResolvers<void>()
      const left = Promise.withResolvers<void>()
      let isSlowBelow = false
      const stored = memoryLedger()
      const ledger: Ledger = {
        ...stored,
        append: async (...given) => {
          if (isSlowBelow && given[0] !== run.id) await left.promise
          const appended = await stored.append(...given)
          const [, , events] = given
          const isSpent = ({ type, usage }: RuntimeEvent & { usage?: Usage }): boolean =>
            type === 'usage_updated' && usage?.inputTokens === 300
          if (events.some(isSpent)) spentBelow.resolve()
          return appended
        },
      }
      const runtime = createRuntime({ ledger, agents: [owner], prices, host: { clock } })
      const run = runtime.run(owner, 'Go.')
      const recordOfAll = async (): Promise<RuntimeEvent[][]> => {
        const runs = await Array.fromAsync(ledger.runs())
        return await Promise.all(runs.map(({ runId }) => Array.fromAsync(ledger.read(runId))))
      }
      await waitUntilSettled(clock, spentBelow.promise)
      isSlowBelow = true
      await run.cancel('enough')
      const result = await waitUntilSettled(clock, run.result)
      left.resolve()
      await waitUntilSettled(clock, runtime.idle())
      const results = ofType((await recordOfAll()).flat(), 'tool_result')
      expect(results).toHaveLength(2)
      const [inOwner] = results.filter(({ runId }) => runId === run.id)
      expect(inOwner).toMatchObject({
        outcome: 'cancelled',
        child: { estimated: true },
      })
      expect(result.usage.inputTokens).toBeGreaterThanOrEqual(380)
      expect(result.usage).toMatchObject(usage)
      expect(checkBudgets(await recordOfAll())).toEqual([])
    },
  )

  it('has the time that its parent has, whatever the clock says meanwhile', async () => {
    const clock = manualClock()
    const hours = 3 * 3_600_000
    const worker = helper(scriptedModel([{ text: 'Helped.' }], 'cheap'))
    const agent = defineAgent({
      ...{
        name: 'parent',
        instructions: 'Go.',
        tools: [agentTool(worker)],
        limits: { maxDurationMs: 60_000 },
      },
      model: scriptedModel([{ toolCalls: [ask] }, { text: 'Done.' }], 'cheap'),
    })
    // The clock on the wall is set back by three hours after the first model call.
    let back = 0
    const wall = { ...clock, now: () => clock.now() - back }
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock: wall } })
    const run = runtime.run(agent, 'Go.')
    run.events$.subscribe(({ type }) => {
      if (type === 'assistant_message_finished') back = hours
    })
    await waitUntilSettled(clock, run.result)
    const [started] = ofType(await recorded(ledger, run.id), 'tool_started')
    expect(started?.grant?.durationMs).toBeLessThanOrEqual(60_000)
    const below = await recorded(ledger, deriveChildRunId(run.id, started!.toolCallId))
    expect(ofType(below, 'run_started')[0]?.limits.maxDurationMs).toBeLessThanOrEqual(60_000)
  })
})
