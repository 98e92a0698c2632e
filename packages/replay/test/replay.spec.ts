import {
  type Agent,
  type AgentOptions,
  agentTool,
  createRuntime,
  defineAgent,
  type Ledger,
  memoryLedger,
  type RunId,
  type RunOptions,
  type RunState,
  type RuntimeEvent,
  type Tool,
  type Model,
} from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { evolve, recoverMessage } from '@tallystick/core/machine'
import type { RefusalPolicy, ModelSignal } from '@tallystick/core/vocabulary'
import { foldTo, rebuildRequest } from '@tallystick/ledger'
import { replayRun, type ReplayOptions, type ReplayReport } from '@tallystick/replay'
import {
  manualClock,
  scriptedModel,
  seededRandom,
  testTool,
  type ScriptedReply,
  waitUntilSettled,
  type ScriptedStep,
} from '@tallystick/testkit'
import { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'

const usage = { inputTokens: 100, outputTokens: 10 }
/** As many steps as anyone may want. */
const always = (reply: (said: number) => ScriptedReply, modelId?: string): ReturnType<typeof scriptedModel> =>
  scriptedModel(
    Array.from({ length: 9 }, () => ({ messages }) => ({ usage, ...reply(messages.length) })),
    modelId,
  )

const look = testTool({ name: 'look', run: () => '5 USD' })
const weigh = testTool({ name: 'weigh' })
const payAs = (verdict: 'ask' | 'run'): ReturnType<typeof testTool> =>
  testTool({ name: 'pay', effect: 'write', check: () => ({ kind: verdict }), run: () => 'paid' })

/** Looks and weighs, then pays, which a person has to approve, then says so. */
function buyer(own: Partial<AgentOptions<unknown>> = {}): Agent<unknown> {
  const replies: readonly ScriptedReply[] = [
    { toolCalls: ['look', 'weigh'].map((name) => ({ name, input: { at: 'tea' } })) },
    { toolCalls: [{ name: 'pay', input: { usd: 5 } }] },
  ]
  return defineAgent<unknown>({
    ...{ name: 'buyer', instructions: 'Buy tea.', tools: [look, weigh, payAs('ask')] },
    model: always((said) => replies[(said - 1) / 2] ?? { text: 'Bought.' }),
    ...own,
  })
}

let recordings = 0

/** Drives a run of an agent to its end, approving what is asked; answers its id. */
async function record(
  agent: Agent<unknown>,
  { ledger, later, ...options }: RunOptions & { readonly ledger: Ledger; readonly later?: Agent<unknown> },
): Promise<RunId> {
  const host = { clock: manualClock(), random: seededRandom(++recordings) }
  const first = createRuntime({ ledger, host }).run(agent, 'Go.', options)
  const waiting = await first.result
  const runtime = createRuntime({ ledger, agents: [later ?? agent], host })
  for (const { toolCallId } of waiting.pendingApprovals) {
    const run = runtime.resume(first.id)
    await run.approve(toolCallId, { by: 'ann' })
    expect(await run.result).toMatchObject({ status: 'done' })
  }
  await runtime.idle()
  return first.id
}

/** Drives a run again by an agent, which must not be asked anything. */
async function again(
  ledger: Ledger,
  runId: RunId,
  agent: Agent<unknown>,
  options?: ReplayOptions,
): Promise<ReplayReport> {
  const agents = new Map(listReachableAgents(agent).map((each) => [each.name, each]))
  return await replayRun(ledger, runId, (name) => agents.get(name)!, options)
}

const recordedBuyer = async (): Promise<{ ledger: Ledger; runId: RunId; events: number }> => {
  const ledger = memoryLedger()
  const runId = await record(buyer(), { ledger })
  return { ledger, runId, events: (await ledger.head(runId))!.seq }
}

describe('a run driven again by code that has changed since', () => {
  it('comes out the same by the same code, whose model is not asked and whose tools do not run', async () => {
    const { ledger, runId, events } = await recordedBuyer()
    const model = scriptedModel([])
    const tools = [look, weigh, payAs('ask')]
    const before = tools.map(({ runs }) => runs.length)
    const received: number[] = []
    const onEvents = (count: number): void => void received.push(count)
    expect(await again(ledger, runId, buyer({ model, tools }), { onEvents })).toEqual({ runId, events })
    expect([model.requests, tools.map(({ runs }) => runs.length)]).toEqual([[], before])
    expect([received.length > 5, received.reduce((sum, count) => sum + count, 0)]).toEqual([true, events])
  })

  it('comes out the same where an older release left out the digest of the input that a call starts with', async () => {
    const { ledger, runId, events } = await recordedBuyer()
    const leftOut: unknown[] = []
    const older: Ledger = {
      ...ledger,
      async *read(...asked) {
        for await (const event of ledger.read(...asked)) {
          if (event.type !== 'tool_started') yield event
          else {
            const { inputDigest, ...rest } = event
            leftOut.push(inputDigest)
            yield rest
          }
        }
      },
    }
    expect(await again(older, runId, buyer())).toEqual({ runId, events })
    expect(leftOut.slice(0, 3)).toEqual([expect.any(String), expect.any(String), expect.any(String)])
  })

  it('comes out the same with settings of its own, which its first event records', async () => {
    const ledger = memoryLedger()
    const modelSettings = { seed: 7, providerOptions: { acme: { tier: 'flex' } } }
    const runId = await record(buyer({ modelSettings: { temperature: 0 } }), { ledger, modelSettings })
    const events = (await ledger.head(runId))!.seq
    expect(await again(ledger, runId, buyer({ modelSettings: { temperature: 0 } }))).toEqual({
      runId,
      events,
    })
    const [first] = await Array.fromAsync(ledger.read(runId, { toSeq: 1 }))
    expect(first).toMatchObject({ modelSettings, definition: { modelSettings: { temperature: 0 } } })
    const { request } = rebuildRequest(await foldTo(ledger, runId))
    expect(request.modelSettings).toEqual({ temperature: 0, ...modelSettings })
  })

  it.each([
    ['another prompt', { instructions: 'Buy coffee.' }, 'definition.instructions'],
    ['another model', { model: always(() => ({}), 'other') }, 'definition.model.modelId'],
    [
      'a tool that is described otherwise',
      { tools: [{ ...look, description: 'Looks.' }, weigh, payAs('ask')] },
      'definition.tools[look].description',
    ],
    [
      'a tool less',
      { tools: [look, payAs('ask')] },
      'definition.tools[weigh]',
      'definition.policy.tools[weigh]',
    ],
    ['fewer tokens', { maxOutputTokens: 7 }, 'definition.maxOutputTokens'],
    ['more chance', { modelSettings: { temperature: 1 } }, 'definition.modelSettings'],
  ])(
    'differs at its first event by %s, which is the one thing that is named beside the digest',
    async (_what, own, ...paths) => {
      const { ledger, runId } = await recordedBuyer()
      const { events, divergence } = await again(ledger, runId, buyer(own))
      expect({ events, seq: divergence?.seq }).toEqual({ events: 0, seq: 1 })
      const expected = ['definition.digest', ...paths].map(String)
      expect(divergence?.differences.map((each) => each.path).toSorted()).toEqual(expected.toSorted())
    },
  )

  it('differs where the code first does something else, where the words on record stand for those of today', async () => {
    const { ledger, runId, events } = await recordedBuyer()
    const words = { definitions: 'recorded' } as const
    expect(await again(ledger, runId, buyer({ instructions: 'Buy coffee.' }), words)).toEqual({
      runId,
      events,
    })
    const removed = await again(ledger, runId, buyer({ tools: [look, payAs('ask')] }), words)
    expect(removed.divergence).toMatchObject({
      ...{
        recorded: { type: 'tool_requests_collected', turn: 1 },
        happened: { type: 'tool_requests_collected' },
      },
      differences: expect.arrayContaining([
        { path: 'calls[weigh].plan', recorded: 'run', happened: 'settle' },
      ]) as unknown,
    })
    const unasked = await again(ledger, runId, buyer({ tools: [look, weigh, payAs('run')] }))
    expect(unasked.divergence).toMatchObject({
      ...{
        recorded: { turn: 2 },
        differences: [{ path: 'calls[pay].plan', recorded: 'ask', happened: 'run' }],
      },
    })
  })

  it('differs where the code of the schema takes another answer than it took then', async () => {
    const ledger = memoryLedger()
    const sealed = (isSold: (price: number) => boolean): Agent<unknown> => {
      const jsonSchema = { input: () => ({ type: 'object', properties: { price: { type: 'number' } } }) }
      const validate = (value: unknown) =>
        isSold((value as { readonly price: number }).price)
          ? { value }
          : { issues: [{ path: ['price'], message: 'not for sale' }] }
      const output = { '~standard': { version: 1, vendor: 'test', jsonSchema, validate } } as const
      const model = always((said) => ({ text: `{"price":${said === 1 ? 5 : 7}}` }))
      return defineAgent<unknown>({ name: 'seller', instructions: 'Sell tea.', model, output })
    }
    const runId = await record(
      sealed((price) => price > 6),
      { ledger },
    )
    const events = (await ledger.head(runId))!.seq
    expect(
      await again(
        ledger,
        runId,
        sealed((price) => price > 5),
      ),
    ).toEqual({ runId, events })
    for (const [isSold, turn, valid] of [
      [() => true, 1, true],
      [() => false, 2, false],
    ] as const) {
      const { divergence } = await again(ledger, runId, sealed(isSold))
      expect(divergence).toMatchObject({
        recorded: { type: 'output_checked', turn, valid: !valid },
        happened: { type: 'output_checked', turn, valid },
      })
    }
  })

  it('says of events of different types that they are, and nothing of what each holds', async () => {
    const ledger = memoryLedger()
    const runId = await record(buyer(), { ledger })
    const stopping = buyer({ stopWhen: ({ turn }: { readonly turn: number }) => turn === 2 })
    const { divergence } = await again(ledger, runId, stopping)
    expect(divergence).toMatchObject({
      recorded: { type: 'model_call_started' },
      differences: [{ path: 'type', recorded: 'model_call_started', happened: 'run_finished' }],
    })
  })

  it('comes out the same through a take-over with another definition by the words on record only', async () => {
    const ledger = memoryLedger()
    const later = buyer({ instructions: 'Buy coffee.' })
    const runId = await record(buyer(), { ledger, later })
    const events = (await ledger.head(runId))!.seq
    expect((await again(ledger, runId, later)).divergence?.seq).toBe(1)
    const { divergence } = await again(ledger, runId, buyer())
    expect(divergence).toMatchObject({ recorded: { type: 'run_resumed' } })
    expect(divergence?.differences).toEqual(
      expect.arrayContaining([
        { path: 'definition.instructions', recorded: 'Buy coffee.', happened: 'Buy tea.' },
      ]),
    )
    expect(divergence?.differences).toHaveLength(2)
    for (const agent of [later, buyer()]) {
      expect(await again(ledger, runId, agent, { definitions: 'recorded' })).toEqual({ runId, events })
    }
  })
})

describe('runs that are bound to others, driven again', () => {
  it('come out the same, each alone: a parent and its child run', async () => {
    const ledger = memoryLedger()
    const clerk = (instructions: string): Agent<unknown> =>
      buyer({ name: 'clerk', description: 'Buys.', instructions })
    const boss = (instructions = 'Buy tea.'): Agent<unknown> =>
      defineAgent<unknown>({
        ...{ name: 'boss', instructions: '', tools: [agentTool(clerk(instructions))] },
        model: always((said) =>
          said === 1 ? { toolCalls: [{ name: 'clerk', input: { task: 'Buy.' } }] } : { text: 'Done.' },
        ),
      })
    const runId = await record(boss(), { ledger })
    const runs = await Array.fromAsync(ledger.runs())
    expect(runs).toHaveLength(2)
    for (const { runId: each, head } of runs) {
      expect(await again(ledger, each, boss())).toEqual({ runId: each, events: head.seq })
    }
    // The clerk's input is in its own run.
    expect(await again(ledger, runId, boss('Buy coffee.'))).not.toHaveProperty('divergence')
    const child = runs.find((run) => run.runId !== runId)!.runId
    expect((await again(ledger, child, boss('Buy coffee.'))).divergence?.seq).toBe(1)
  })

  it('come out the same with a handoff, and differ where it is to an agent that says something else', async () => {
    const ledger = memoryLedger()
    const triage = (instructions = 'Bill.'): Agent<unknown> => {
      const billing = defineAgent({
        ...{
          name: 'billing',
          description: 'Bills.',
          instructions,
          model: always(() => ({ text: 'Billed.' })),
        },
      })
      const transfer = { toolCalls: [{ name: 'transfer_to_billing', input: { reason: 'a bill' } }] }
      return defineAgent<unknown>({
        name: 'triage',
        instructions: '',
        handoffs: [billing],
        model: always(() => transfer),
      })
    }
    const runId = await record(triage(), { ledger })
    const events = (await ledger.head(runId))!.seq
    expect(await again(ledger, runId, triage())).toEqual({ runId, events })
    expect((await again(ledger, runId, triage('Bill politely.'))).divergence).toMatchObject({
      ...{ recorded: { type: 'agent_handed_off' }, happened: { type: 'agent_handed_off' } },
      differences: expect.arrayContaining([
        { path: 'definition.instructions', recorded: 'Bill.', happened: 'Bill politely.' },
      ]) as unknown,
    })
    const words = { definitions: 'recorded' } as const
    expect(await again(ledger, runId, triage('Bill politely.'), words)).toEqual({ runId, events })
  })

  it('come out the same as the second of a session, with a summary that a model wrote', async () => {
    const ledger = memoryLedger()
    const talker = (maxContextTokens: number): Agent<unknown> =>
      defineAgent<unknown>({
        ...{
          name: 'talker',
          instructions: '',
          model: always((said) => ({ text: `${said} ${'word '.repeat(60)}` })),
        },
        compaction: {
          maxContextTokens,
          keepMessages: 1,
          summarize: always(() => ({ text: 'They talked.' }), 'sums-up'),
        },
      })
    await record(talker(60), { ledger, sessionId: 'chat' })
    const runId = await record(talker(60), { ledger, sessionId: 'chat' })
    const types = (await Array.fromAsync(ledger.read(runId))).map(({ type }) => type)
    expect(types).toEqual(
      expect.arrayContaining(['history_carried', 'compaction_started', 'context_compacted']),
    )
    expect(await again(ledger, runId, talker(60))).toEqual({ runId, events: types.length })
    const otherwise = await again(ledger, runId, talker(100_000), { definitions: 'recorded' })
    expect(otherwise.divergence).toMatchObject({
      differences: [{ path: 'type', recorded: 'compaction_started', happened: 'model_call_started' }],
    })
  })

  it('come out the same as a fork, from where it goes its own way', async () => {
    const { ledger, runId } = await recordedBuyer()
    const events = await Array.fromAsync(ledger.read(runId))
    const atSeq = events.find(({ type }) => type === 'tool_results_injected')!.seq
    const other = buyer({ instructions: 'Buy coffee.' })
    const host = { clock: manualClock(), random: seededRandom(99) }
    const fork = createRuntime({ ledger, agents: [other], host }).fork(runId, { atSeq })
    const { status, seq } = await fork.result
    expect(status).toBe('suspended')
    expect(await again(ledger, fork.id, other)).toEqual({ runId: fork.id, events: seq })
    const asBefore = await again(ledger, fork.id, buyer())
    expect(asBefore).toMatchObject({ events: atSeq, divergence: { recorded: { type: 'run_resumed' } } })
  })
})

const refused: ScriptedStep = { text: 'Well, ', reasoning: 'Hm.', stopReason: 'refused', usage }
const advised: ScriptedStep = {
  ...refused,
  refusal: { reason: 'cyber: It could do harm.', leaveOut: true, askAnother: true },
}

/** Plays a model that refuses, and a fallback that answers; returns the events of the run. */
async function passedOn(step: ScriptedStep, onRefusal?: RefusalPolicy): Promise<readonly RuntimeEvent[]> {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const agent = defineAgent({
    ...{ name: 'helper', instructions: 'Help.', tools: [testTool({ name: 'look' })] },
    ...{ model: scriptedModel([step]), fallbacks: [scriptedModel([{ text: 'Here.', usage }], 'other-1')] },
    ...(onRefusal && { onRefusal }),
  })
  const run = createRuntime({ ledger, agents: [agent], host: { clock } }).run(agent, 'Go.')
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'answered', text: 'Here.' })
  const events = await Array.fromAsync(ledger.read(run.id))
  expect(await replayRun(ledger, run.id, () => agent)).toEqual({ runId: run.id, events: events.length })
  return events
}

/** What the machine heard at the failure of the first attempt, as the record says it. */
function heardAtFailure(events: readonly RuntimeEvent[]): ReturnType<typeof recoverMessage> {
  const index = events.findIndex(({ type }) => type === 'model_stream_failed')
  const before = events.slice(0, index).reduce<RunState | undefined>(evolve, undefined)
  return recoverMessage(before, { recorded: events, index })
}

describe('a refusal that is passed on to a fallback', () => {
  it('is heard again as the finish that it was, with what the vendor said and what was streamed', async () => {
    const { refusal } = advised as { readonly refusal: object }
    expect(heardAtFailure(await passedOn(advised))).toEqual({
      ...{ type: 'model_finished', turn: 1, attempt: 1, stopReason: 'refused', refusal },
      parts: [
        { type: 'reasoning', text: 'Hm.', part: 0 },
        { type: 'text', text: 'Well, ', part: 1 },
      ],
    })
  })

  it('is heard as a finish where the vendor said nothing of it, and the agent wanted the fallback', async () => {
    const received = heardAtFailure(await passedOn(refused, { fallback: true }))
    expect(received).toMatchObject({ type: 'model_finished', stopReason: 'refused', refusal: {} })
  })

  it('is heard with the calls that the reply asked for', async () => {
    const events = await passedOn({ ...advised, toolCalls: [{ id: 'c', name: 'look', input: {} }] })
    expect(heardAtFailure(events)).toMatchObject({
      parts: [{ part: 0 }, { part: 1 }, { type: 'tool_call', providerCallId: 'c', name: 'look', part: 2 }],
    })
  })

  it('replays as a failure where it was recorded without its refusal, by an earlier release', async () => {
    const earlier = (await passedOn(advised)).map((event) => {
      if (event.type !== 'model_stream_failed') return event
      const { refusal: _refusal, ...rest } = event
      return rest
    })
    expect(heardAtFailure(earlier)).toMatchObject({ type: 'model_failed', failure: { class: 'refused' } })
  })

  it('differs from a failed call, which records no refusal', async () => {
    const failed = await passedOn({ text: 'Hm.', fail: 'authentication' })
    const [failure] = failed.filter(({ type }) => type === 'model_stream_failed')
    expect(failure).not.toHaveProperty('refusal')
    expect(heardAtFailure(failed)).toMatchObject({ type: 'model_failed' })
  })
})

function agentWith(tools: readonly Tool[]): {
  readonly agent: Agent
  readonly source: { tools: readonly Tool[] }
} {
  const source = { tools }
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: {} }] },
    { toolCalls: [{ name: 'gone', input: {} }] },
    { text: 'Done.' },
  ])
  return { agent: defineAgent({ name: 'a', instructions: '', model, toolSource: source }), source }
}

it('takes the tools of a source, and what they said of calls, from the record', async () => {
  const { agent, source } = agentWith([])
  const look = testTool({
    name: 'look',
    run: () => {
      source.tools = [look]
      return 'seen'
    },
  })
  source.tools = [look, testTool({ name: 'gone', run: () => 'never' })]
  const ledger = memoryLedger()
  const { runId } = await createRuntime({ ledger, agents: [agent] }).run(agent, 'Go.').result
  // The source has nothing of it today.
  expect(await replayRun(ledger, runId, () => agentWith([]).agent)).not.toHaveProperty('divergence')
  // It does not take what the source has today for what it had.
  expect(await replayRun(ledger, runId, () => agentWith([look]).agent)).not.toHaveProperty('divergence')
  const offered = []
  for await (const event of ledger.read(runId)) {
    if (event.type !== 'model_call_started') continue
    const request = rebuildRequest(await foldTo(ledger, runId, event.seq))
    offered.push('request' in request ? request.request.tools.map(({ name }) => name) : request)
  }
  expect(offered).toEqual([['look', 'gone'], ['look'], ['look']])
})

/** What a model may report beside plain text, each in a run of its own. */
const reports: Readonly<Record<string, readonly ModelSignal[]>> = {
  'text that it takes back': [
    { type: 'model_text', part: 0, text: 'The balance is 12.' },
    { type: 'model_text', part: 0, text: 'Hello', replaces: true },
  ],
  'reasoning that it takes back': [
    { type: 'model_reasoning', part: 1, text: 'Twelve?' },
    { type: 'model_reasoning', part: 1, text: 'Hm', replaces: true },
  ],
  'a conversation that is shorter than what is billed': [
    {
      ...{ type: 'model_usage', usage: { inputTokens: 60_000, outputTokens: 9, webSearches: 2 } },
      ...{ contextTokens: 612, raw: { iterations: [] } },
    },
  ],
}

describe('a recorded run comes out the same', () => {
  it.each(Object.entries(reports))('with %s', async (_, signals) => {
    const model: Model = {
      ...{ provider: 'test', api: 'test', modelId: 'm' },
      stream: () =>
        new Observable((subscriber) => {
          for (const signal of signals) subscriber.next(signal)
          const reasoned = signals.some(({ type }) => type === 'model_reasoning')
          subscriber.next({
            ...{ type: 'model_finished', stopReason: 'end' },
            parts: [
              { type: 'text', text: 'Hello', part: 0 },
              ...(reasoned ? [{ type: 'reasoning', text: 'Hm', part: 1 } as const] : []),
            ],
          })
          subscriber.complete()
        }),
    }
    const agent = defineAgent({ name: 'a', instructions: '', model })
    const ledger = memoryLedger()
    const host = { clock: manualClock(), random: seededRandom(1) }
    const { runId, text } = await createRuntime({ ledger, host }).run(agent, 'Go.').result
    expect(text).toBe('Hello')
    const events: readonly RuntimeEvent[] = await Array.fromAsync(ledger.read(runId))
    expect(await replayRun(ledger, runId, () => agent)).toEqual({ runId, events: events.length })
  })
})
