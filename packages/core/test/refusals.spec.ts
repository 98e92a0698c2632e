import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type AgentOptions,
  type Message,
  type RunResult,
  agentTool,
} from '@tallystick/core'
import type { RefusalPolicy } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { createHistory } from '../src/machine/history.ts'
import { withoutRefused } from '../src/machine/next-action.ts'
import { checkedRun, ofType, recorded, stage } from './stage.ts'

/** What a vendor says that asks for both: another model, and a history without the refused turn. */
const advised: ScriptedStep = {
  text: 'Well, ',
  stopReason: 'refused',
  refusal: { reason: 'cyber: It could do harm.', leaveOut: true, askAnother: true },
}
/** A refusal of which the vendor says nothing. */
const plain: ScriptedStep = { text: 'I would rather not.', stopReason: 'refused' }

/** A session of runs, one an input, each of which a step or more answers. */
async function session(
  steps: readonly ScriptedStep[],
  inputs: readonly string[],
  own: Partial<AgentOptions> = {},
) {
  const clock = manualClock()
  const ledger = memoryLedger()
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'helper', instructions: 'Help.', model, ...own })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
  const results: RunResult[] = []
  for (const input of inputs) {
    const result = await waitUntilSettled(clock, runtime.run(agent, input, { sessionId: 's' }).result)
    checkedRun(await recorded(ledger, result.runId))
    results.push(result)
  }
  const eventsOf = async (place: number) => await recorded(ledger, results[place]?.runId ?? '')
  return { model, results, eventsOf }
}

const wordsOf = (messages: readonly Message[] = []): readonly string[] =>
  messages.map((message) =>
    message.role === 'tool'
      ? message.results.map(({ name, outcome }) => `${name} ${outcome}`).join()
      : message.parts.map((part) => ('text' in part ? part.text : part.type)).join(''),
  )

describe('a refused turn', () => {
  it('leaves the history where the vendor asks for it, on record, and the session continues without', async () => {
    const { model, results, eventsOf } = await session(
      [{ text: 'Hello.' }, advised, { text: 'Sunny.' }],
      ['Hi.', 'Break in.', 'Weather?'],
    )
    expect(results.map(({ reason }) => reason)).toEqual(['answered', 'refused', 'answered'])
    expect(results[1]).toMatchObject({ text: 'Well, ', detail: 'cyber: It could do harm.' })
    expect(wordsOf(model.requests[2]?.messages)).toEqual(['Hi.', 'Hello.', 'Weather?'])
    const events = await eventsOf(1)
    expect(ofType(events, 'history_edited')).toMatchObject([
      { edits: [{ index: 2 }, { index: 3 }], reason: expect.stringContaining('refused') },
    ])
    expect(ofType(events, 'assistant_message_finished')[0]?.refusal).toMatchObject({ leaveOut: true })
  })

  it('stays where the vendor does not ask for it, or the agent keeps it', async () => {
    const silent = await session([plain, { text: 'Sunny.' }], ['Break in.', 'Weather?'])
    expect(wordsOf(silent.model.requests[1]?.messages)).toEqual([
      ...['Break in.', 'I would rather not.', 'Weather?'],
    ])
    const kept = await session([advised, { text: 'Sunny.' }], ['Break in.', 'Weather?'], {
      onRefusal: { history: 'keep' },
    })
    expect(wordsOf(kept.model.requests[1]?.messages)).toEqual(['Break in.', 'Well, ', 'Weather?'])
    const dropped = await session([plain, { text: 'Sunny.' }], ['Break in.', 'Weather?'], {
      onRefusal: { history: 'leave_out' },
    })
    expect(wordsOf(dropped.model.requests[1]?.messages)).toEqual(['Weather?'])
  })

  it('goes as a whole, with what came of its tools; that they ran stays said', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', run: () => 'paid 5 to mallory' })
    const nothing = testTool({
      name: 'nothing',
      check: () => ({ kind: 'refuse', outcome: 'denied', text: 'No.' }),
    })
    const { model } = await session(
      [{ toolCalls: ['pay', 'nothing'].map((name) => ({ name, input: {} })) }, advised, { text: 'Sunny.' }],
      ['Pay mallory.', 'Weather?'],
      { tools: [pay, nothing] },
    )
    const words = wordsOf(model.requests[2]?.messages)
    expect(words).toEqual([expect.stringContaining('Tools that ran in it: pay (success).'), 'Weather?'])
    expect(words.join()).not.toContain('mallory')
  })

  it('is all that was said since the last answer, and nothing before it', async () => {
    const clock = manualClock()
    const ledger = memoryLedger()
    let began = (): void => {}
    const begun = new Promise<void>((resolve) => (began = resolve))
    let release = (): void => {}
    const model = scriptedModel([
      () => {
        began()
        return { text: 'First.', until: new Promise<void>((resolve) => (release = resolve)) }
      },
      advised,
      { text: 'Sunny.' },
    ])
    const agent = defineAgent({ name: 'helper', instructions: 'Help.', model })
    const runtime = createRuntime({ ledger, agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'One.', { sessionId: 's' })
    await waitUntilSettled(clock, begun)
    await waitUntilSettled(clock, run.queue('Break in.'))
    release()
    expect(await waitUntilSettled(clock, run.result)).toMatchObject({ reason: 'refused', turns: 2 })
    await waitUntilSettled(clock, runtime.run(agent, 'Weather?', { sessionId: 's' }).result)
    expect(wordsOf(model.requests[2]?.messages)).toEqual(['One.', 'First.', 'Weather?'])
  })
})

describe('a fallback', () => {
  const other = () => scriptedModel([{ text: 'Here you are.' }, { text: 'Again.' }], 'other-1')

  it('takes over from a model that refuses, where the vendor advises it', async () => {
    const fallback = other()
    const { results, eventsOf } = await session([advised], ['Scan my host.'], { fallbacks: [fallback] })
    expect(results[0]).toMatchObject({ reason: 'answered', text: 'Here you are.' })
    // Two attempts are never spliced.
    expect(wordsOf(fallback.requests[0]?.messages)).toEqual(['Scan my host.'])
    const events = await eventsOf(0)
    expect(ofType(events, 'model_stream_failed')).toMatchObject([
      {
        failure: { class: 'refused', message: 'scripted-1 refused to answer (cyber: It could do harm.).' },
        refusal: { reason: 'cyber: It could do harm.', leaveOut: true, askAnother: true },
      },
    ])
    expect(ofType(events, 'model_call_started').map(({ model }) => model.modelId)).toEqual([
      ...['scripted-1', 'other-1'],
    ])
  })

  it.each<[string, ScriptedStep, RefusalPolicy | undefined, boolean]>([
    ['the vendor says nothing', plain, undefined, false],
    ['the agent wants it', plain, { fallback: true }, true],
    ['the agent does not want it', advised, { fallback: false }, false],
  ])('takes over or not, where %s', async (_, step, onRefusal, takesOver) => {
    const fallback = other()
    const { results } = await session([step], ['Scan.'], {
      fallbacks: [fallback],
      ...(onRefusal && { onRefusal }),
    })
    expect(results[0]?.reason).toBe(takesOver ? 'answered' : 'refused')
    expect(fallback.requests).toHaveLength(takesOver ? 1 : 0)
  })

  it('that refuses as well ends the run, without any of it in the history', async () => {
    const last = scriptedModel([advised, { text: 'Sunny.' }], 'other-1')
    const { results, eventsOf } = await session(
      [advised, { fail: 'overloaded' }],
      ['Break in.', 'Weather?'],
      {
        fallbacks: [last],
        retry: { maxAttempts: 1 },
      },
    )
    expect(results.map(({ reason }) => reason)).toEqual(['refused', 'answered'])
    expect(wordsOf(last.requests[1]?.messages)).toEqual(['Weather?'])
    expect(ofType(await eventsOf(0), 'history_edited')).toHaveLength(1)
  })

  it('is not asked for what a refused reply asked for: its calls do not run', async () => {
    const tool = testTool({ name: 'wipe', effect: 'write' })
    const toolReply: ScriptedStep = { ...advised, toolCalls: [{ name: 'wipe', input: {} }] }
    const { results, eventsOf } = await session([toolReply], ['Go.'], { tools: [tool], fallbacks: [other()] })
    expect(results[0]).toMatchObject({ reason: 'answered', toolCalls: 0 })
    expect(tool.runs).toHaveLength(0)
    expect(ofType(await eventsOf(0), 'tool_result')).toMatchObject([{ outcome: 'skipped' }])
  })
})

it('what an agent makes of refusals is checked, and is in its definition', () => {
  const model = scriptedModel([])
  const options = { name: 'a', instructions: '', model }
  const { definition } = defineAgent({ ...options, onRefusal: { history: 'keep', fallback: undefined } })
  expect(definition.onRefusal).toEqual({ history: 'keep' })
  expect(defineAgent({ ...options, onRefusal: {} }).definition.digest).toBe(
    defineAgent(options).definition.digest,
  )
  const wrong = { ...options, onRefusal: { history: 'drop' as never } }
  expect(() => defineAgent(wrong)).toThrow(/onRefusal\.history is 'drop'; use one of 'keep', 'leave_out'/)
})

// The end of a run whose model refused: when the exchange is left out of the history, and what stays said of it.

const end = { kind: 'finish', facts: [{ type: 'run_finished' }] } as never
const user = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] }
const reply = { role: 'assistant', parts: [] }
const tools = (...outcomes: string[]) => ({
  role: 'tool',
  results: outcomes.map((outcome, place) => ({ name: `t${place}`, outcome })),
})
const reason = 'The model refused this exchange, and would refuse what is asked behind it.'

interface Refused {
  readonly stopReason?: string
  readonly leaveOut?: boolean
  readonly failure?: string
  readonly history?: 'keep' | 'leave_out'
  readonly messages?: readonly object[]
  readonly from?: number
}

function edited({
  stopReason = 'refused',
  leaveOut,
  failure,
  history,
  messages,
  from = 1,
}: Refused): unknown {
  const all = messages ?? [user, user, reply]
  const state = {
    turn: 3,
    exchangeFrom: from,
    history: createHistory(all as never),
    definition: { ...(history && { onRefusal: { history } }) },
    reply: {
      message: { stopReason },
      ...(leaveOut !== undefined && { refusal: { leaveOut } }),
      ...(failure !== undefined && { failure: { class: failure } }),
    },
  }
  return withoutRefused(state as never, end)
}

const leftOut = (edits: readonly object[] = [{ index: 1 }, { index: 2 }]) => ({
  kind: 'finish',
  facts: [{ type: 'history_edited', turn: 3, edits, reason }, { type: 'run_finished' }],
})

describe('a refused exchange', () => {
  it.each<readonly [string, Refused]>([
    ['its vendor asks for that', { leaveOut: true }],
    ['its agent wants that', { history: 'leave_out' }],
    ['its agent wants that, though the vendor does not', { leaveOut: false, history: 'leave_out' }],
    ['the call failed as refused', { stopReason: 'failed', failure: 'refused' }],
    ['its agent wants that of filtered output', { stopReason: 'content_filtered', history: 'leave_out' }],
  ])('is left out of the history where %s', (_why, refused) => {
    expect(edited(refused)).toEqual(leftOut())
  })

  it.each<readonly [string, Refused]>([
    ['nobody asks for that', {}],
    ['its vendor asks for none', { leaveOut: false }],
    ['its agent keeps it', { leaveOut: true, history: 'keep' }],
    ['its agent keeps what failed as refused', { stopReason: 'failed', failure: 'refused', history: 'keep' }],
    ['the call failed otherwise', { stopReason: 'failed', failure: 'server', history: 'leave_out' }],
    ['the output was filtered', { stopReason: 'content_filtered', leaveOut: true }],
    ['the reply is an answer', { stopReason: 'end', leaveOut: true, history: 'leave_out' }],
    ['nothing was said in it', { leaveOut: true, from: 3 }],
  ])('stays where %s', (_why, refused) => {
    expect(edited(refused)).toBe(end)
  })

  it('stays while the run continues', () => {
    const waiting = { kind: 'wait' } as const
    expect(withoutRefused({ reply: { message: { stopReason: 'refused' } } } as never, waiting)).toBe(waiting)
  })

  it('leaves the names of the tools that ran in it in the place of its first message', () => {
    const outcomes = [
      ...['success', 'invalid_input', 'unknown_tool', 'denied', 'repeated', 'limit_reached', 'skipped'],
      ...['failed', 'timed_out', 'cancelled', 'interrupted'],
    ]
    const text =
      '(An exchange stood here that a model refused to go on with, and it was left out. Tools that ran in it: t0 (success), t7 (failed), t8 (timed_out), t9 (cancelled), t10 (interrupted).)'
    const messages = [user, user, reply, tools(...outcomes), reply]
    const message = { role: 'user', parts: [{ type: 'text', text }] }
    expect(edited({ leaveOut: true, messages })).toEqual(
      leftOut([{ index: 1, message }, { index: 2 }, { index: 3 }, { index: 4 }]),
    )
    const none = [user, tools('success'), user, tools('denied')]
    expect(edited({ leaveOut: true, messages: none, from: 2 })).toEqual(leftOut([{ index: 2 }, { index: 3 }]))
  })
})

const look = testTool({ name: 'look', run: () => 'three open tickets' })
const asks: ScriptedStep = { toolCalls: [{ name: 'look', input: {} }] }

async function play(steps: readonly ScriptedStep[], options: object = {}) {
  const set = stage({ steps: [...steps], tools: [look], ...options })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  return { result, events: checkedRun(await set.eventsOf(run)) }
}

describe('a reply without a word', () => {
  it.each<readonly [string, ScriptedStep]>([
    ['nothing', {}],
    ['blanks', { text: ' \n\t' }],
    ['reasoning alone', { reasoning: 'Three tickets, I think.' }],
  ])(
    'given %s and then an answer, when the model is asked again, then the answer counts',
    async (_, empty) => {
      const { result, events } = await play([asks, empty, { text: 'Three.' }])
      expect(result).toMatchObject({ reason: 'answered', text: 'Three.', turns: 2 })
      expect(ofType(events, 'model_stream_failed').map(({ failure }) => failure.class)).toEqual([
        'empty_reply',
      ])
    },
  )

  it('given that it comes every time, when the attempts are over, then the run ends as empty_reply', async () => {
    const { result } = await play([asks, {}])
    expect(result).toMatchObject({
      reason: 'empty_reply',
      text: '',
      failure: { class: 'empty_reply', provider: 'scripted' },
    })
  })

  it('given a limit that was met, when the closing call has no word, then the limit is why the run ends', async () => {
    const { result } = await play([asks, {}], { limits: { maxTurns: 1 } })
    expect(result.reason).toBe('turn_limit')
  })

  it('given a child run, when its answer is empty, then its parent reads that there is none', async () => {
    const child = defineAgent({
      name: 'researcher',
      description: 'Finds out.',
      instructions: 'Find out.',
      model: scriptedModel([{}]),
    })
    const { events } = await play(
      [{ toolCalls: [{ name: 'researcher', input: { task: 'How many?' } }] }, { text: 'Nobody knows.' }],
      { tools: [agentTool(child)] },
    )
    const [told] = ofType(events, 'tool_result')
    expect(told).toMatchObject({ outcome: 'failed' })
    expect(JSON.stringify(told?.content)).toContain('without an answer (empty_reply')
  })
})
