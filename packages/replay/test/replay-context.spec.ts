import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  handoff,
  memoryLedger,
  joinText,
  type Agent,
  type Ledger,
  type Message,
  type RunId,
} from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'
import { replayRun, type ReplayOptions } from '@tallystick/replay'

interface App {
  readonly user: string
  readonly trusted: boolean
}

const context: App = { user: 'Ada', trusted: false }

/** Agents whose code asks for the context wherever it can; `words` is what changes between two versions of it. */
function agents(words = 'You help'): readonly [Agent<unknown, App>, Agent<unknown, App>] {
  const look = { ...testTool({ name: 'look' }), check: () => ({ kind: 'run' as const }) }
  const second = defineAgent({
    name: 'second',
    description: 'Ends it.',
    instructions: ({ user }: App) => `${words} ${user} on.`,
    model: scriptedModel([{ text: 'Not asked: the run stops first.' }]),
    stopWhen: (state, { trusted }) => !trusted && state.turn > 1,
  })
  const first = defineAgent({
    name: 'first',
    instructions: ({ user }: App) => `${words} ${user}.`,
    model: scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }] },
      { toolCalls: [{ name: 'transfer_to_second', input: {} }] },
    ]),
    tools: [look],
    handoffs: [handoff(second)],
    approval: ({ name, context: { trusted } }) =>
      trusted || name !== 'look' ? 'run' : { ask: 'not trusted' },
    prepareTurn: (_state, { user }) => ({ instructions: `${words} ${user} now.`, maxOutputTokens: 99 }),
  })
  return [first, second]
}

async function played(): Promise<{ readonly ledger: Ledger; readonly runId: RunId }> {
  const [clock, ledger, [first]] = [manualClock(), memoryLedger(), agents()]
  const run = createRuntime({ ledger, host: { clock } }).run(first, 'Go.', { context })
  const [pending] = (await waitUntilSettled(clock, run.result)).pendingApprovals
  await waitUntilSettled(clock, run.approve(pending?.toolCallId ?? '', { by: 'maria' }))
  const result = await waitUntilSettled(clock, run.result)
  expect(result).toMatchObject({ reason: 'stopped', agent: 'second' })
  return { ledger, runId: run.id }
}

async function replayed(options: ReplayOptions, words?: string): ReturnType<typeof replayRun> {
  const { ledger, runId } = await played()
  const known = agents(words)
  return await replayRun(
    ledger,
    runId,
    (name) => known.find((agent) => agent.name === name) as Agent,
    options,
  )
}

describe('a turn that an agent took its time to prepare', () => {
  it.each(['maxTotalInputTokens', 'maxTotalTokens'] as const)(
    'replays where %s then paid for no call, not even the closing one',
    async (limit) => {
      const ledger = memoryLedger()
      const agent = defineAgent({
        ...{
          name: 'agent',
          instructions: 'Act.',
          model: scriptedModel([{ text: 'Done.' }]),
          limits: { [limit]: 1 },
        },
        prepareTurn: () => Promise.resolve(undefined),
      })
      const run = createRuntime({ ledger }).run(agent, 'Go.')
      const { detail } = (await run.result) as { detail?: string }
      expect(detail).toContain('does not pay for one')
      expect((await replayRun(ledger, run.id, () => agent)).divergence).toBeUndefined()
    },
  )

  it.each(['stop', 'finalize'] as const)(
    'replays without the context that it came of, where a limit kept its call from being made (%s)',
    async (onLimit) => {
      const ledger = memoryLedger()
      const agent = defineAgent({
        name: 'agent',
        instructions: 'Act.',
        prepareTurn: (_state, { user }: App) => ({ instructions: `You help ${user.repeat(2_000)}.` }),
        model: scriptedModel([]),
        tools: [testTool({ name: 'look' })],
        // Enough for a call with the agent's own instructions.
        limits: { maxTotalTokens: 900, onLimit },
      })
      const run = createRuntime({ ledger }).run(agent, 'Go.', {
        context: { ...context, user: 'Ada and Bob' },
      })
      expect(await run.result).toMatchObject({ reason: 'token_limit' })
      const events = await Array.fromAsync(ledger.read(run.id))
      expect(events.some(({ type }) => type === 'model_call_started')).toBe(false)
      const found = await replayRun(ledger, run.id, () => agent as Agent)
      expect(found.divergence).toBeUndefined()
    },
  )

  it('replays to itself without asking again, whatever came in meanwhile, and whatever the code says now', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const asked: string[] = []
    const answers: (() => void)[] = []
    const agent = (words: string, model = scriptedModel([])): Agent =>
      defineAgent({
        ...{ name: 'agent', instructions: 'Act.', model, tools: [testTool({ name: 'look' })] },
        prepareTurn: async ({ request: { messages } }) => {
          asked.push(words)
          await new Promise<void>((resolve) => void answers.push(resolve))
          return { messages: [note(words), ...messages] }
        },
      })
    const note = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
    const model = scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Done.' },
      { text: 'Also done.' },
      { text: 'All done.' },
    ])
    const run = createRuntime({ ledger, host: { clock } }).run(agent('then', model), 'Go.')
    const next = async (count: number): Promise<void> => {
      while (answers.length < count) await Promise.resolve()
    }
    await next(1)
    // It changes nothing of the request that is being prepared.
    await run.queue('And then?')
    answers[0]?.()
    await next(2)
    await run.queue('And after that?')
    answers[1]?.()
    for (let place = 3; place <= 4; place++) {
      await next(place)
      answers[place - 1]?.()
    }
    await waitUntilSettled(clock, run.result)
    expect(asked).toEqual(['then', 'then', 'then', 'then'])
    for (const words of ['then', 'now']) {
      expect((await replayRun(ledger, run.id, () => agent(words))).divergence).toBeUndefined()
    }
    expect(asked).toHaveLength(4)
  })

  it('replays without the context that it came of, where a process stopped while it was waited for', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const agent = (answer: Promise<void>): Agent<string, App> =>
      defineAgent({
        ...{ name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'Done.' }]) },
        prepareTurn: async (_turn, { user }: App) => {
          await answer
          return { instructions: user }
        },
      })
    const first = createRuntime({ ledger, host: { clock } })
    const run = first.run(agent(new Promise(() => {})), 'Go.', { context })
    for await (const { type } of run) if (type === 'input_received') break
    await waitUntilSettled(clock, first.drain(0))
    const known = agent(Promise.resolve())
    const second = createRuntime({ ledger, host: { clock }, agents: [known as Agent] })
    await waitUntilSettled(clock, second.resume(run.id, { context }).result)
    const found = await replayRun(ledger, run.id, () => known as Agent)
    expect(found.divergence).toBeUndefined()
  })

  it('replays where the time of the run was up before it was prepared', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    let asked = 0
    const agent = defineAgent({
      ...{ name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'Done.' }]) },
      limits: { maxDurationMs: 40_000 },
      prepareTurn: async () => {
        if (asked++ === 0) await new Promise(() => {})
        return { instructions: 'Close.' }
      },
    })
    const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.')
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'time_limit' })
    expect((await replayRun(ledger, run.id, () => agent)).divergence).toBeUndefined()
  })

  it('replays where no closing call was paid for, and input was left', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const answer = Promise.withResolvers<void>()
    const agent = defineAgent({
      ...{ name: 'agent', instructions: 'Act.', model: scriptedModel([]), limits: { maxTotalTokens: 1 } },
      prepareTurn: async () => {
        await answer.promise
        return undefined
      },
    })
    const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.')
    await run.steer('And quickly.')
    answer.resolve()
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'token_limit' })
    expect((await replayRun(ledger, run.id, () => agent)).divergence).toBeUndefined()
  })

  it('is taken from the record, too, where a function that is not async answered a promise', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const agent = (words: string): Agent =>
      defineAgent({
        ...{ name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'Done.' }]) },
        prepareTurn: () =>
          words === 'broken' ? Promise.reject(new Error('down')) : Promise.resolve({ instructions: words }),
      })
    const run = createRuntime({ ledger, host: { clock } }).run(agent('then'), 'Go.')
    await waitUntilSettled(clock, run.result)
    for (const words of ['now', 'broken']) {
      expect((await replayRun(ledger, run.id, () => agent(words))).divergence).toBeUndefined()
    }
  })
})

describe('a run that had a context', () => {
  it('replays without it where it was stopped beside work in the background', async () => {
    const ledger = memoryLedger()
    const dig = {
      ...testTool({ name: 'dig', run: () => new Promise(() => {}) }),
      background: 'leave' as const,
    }
    const agent = defineAgent({
      ...{ name: 'agent', instructions: 'Act.', tools: [dig] },
      model: scriptedModel([{ toolCalls: [{ name: 'dig', input: {} }] }]),
      stopWhen: ({ turn }, { user }: App) => turn > 0 && user !== '',
    })
    const run = createRuntime({ ledger }).run(agent, 'Go.', { context })
    expect(await run.result).toMatchObject({ reason: 'stopped' })
    const found = await replayRun(ledger, run.id, () => agent)
    expect(found.divergence).toBeUndefined()
  })

  it('replays to itself without it: what code said with it is on record', async () => {
    expect((await replayed({})).divergence).toBeUndefined()
    expect((await replayed({ definitions: 'recorded' })).divergence).toBeUndefined()
  })

  it('replays to itself with it, and its code is asked again', async () => {
    expect((await replayed({ context })).divergence).toBeUndefined()
    const { divergence } = await replayed({ context }, 'You serve')
    expect(divergence?.differences.map(({ path }) => path)).toContain('change.instructions')
  })

  it('shows what other code would do with another context', async () => {
    const { divergence } = await replayed({ context: { ...context, trusted: true } })
    expect(divergence?.recorded?.type).toBe('tool_requests_collected')
  })

  it('records what its instructions were made into', async () => {
    const { ledger, runId } = await played()
    const reported: string[] = []
    for await (const event of ledger.read(runId)) {
      if (event.type === 'run_started' || event.type === 'agent_handed_off')
        reported.push(event.definition.instructions)
      if (event.type === 'input_received') reported.push(joinText(event.message.parts))
    }
    expect(reported).toEqual(['You help Ada.', 'Go.', 'You help Ada on.'])
  })
})

it('a run that stopped only once its limit was raised replays without its context', async () => {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const agent = defineAgent<unknown, App>({
    ...{ name: 'looker', instructions: 'Look.', tools: [testTool({ name: 'look' })] },
    model: scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }]),
    limits: { maxTurns: 1, onLimit: 'ask' },
    stopWhen: ({ limits }, { trusted }) => !trusted && (limits.maxTurns ?? 0) > 1,
  })
  const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.', { context })
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ status: 'suspended', limit: 'maxTurns' })
  await waitUntilSettled(clock, run.raiseLimit('maxTurns', 9, { by: 'ada' }))
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'stopped' })
  expect((await replayRun(ledger, run.id, () => agent as Agent)).divergence).toBeUndefined()
})
