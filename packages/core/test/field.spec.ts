// What users of agent runtimes have run into, one test each: the title says what they saw, and what is so here. In the
// order of the loop: replies that were cut, stops, limits, failures, approvals, and those who watch.
import { describe, expect, it } from 'vitest'
import {
  evolve,
  memoryLedger,
  textOf,
  transcript,
  type Message,
  type RunResult,
  type RunState,
  type RuntimeEvent,
  type ToolResult,
} from '@tallystick/core'
import { checkTranscript, testTool, type ScriptedReply, type ScriptedStep } from '@tallystick/core/testing'
import { checkedRun, ofType, recorded, stage, type Stage } from './stage.ts'

/** The state that a process finds which has nothing but the ledger. */
function stateOf(events: readonly RuntimeEvent[]): RunState {
  return checkedRun(events).reduce<RunState | undefined>(evolve, undefined)!
}

/** What a model would be shown if the user now said one thing more; a provider would accept it. */
function nextRequest(events: readonly RuntimeEvent[]): readonly Message[] {
  const more: Message = { role: 'user', parts: [{ type: 'text', text: 'And now?' }] }
  const messages = [...transcript(stateOf(events)), more]
  expect(checkTranscript(messages)).toEqual([])
  return messages
}

const rolesOf = (messages: readonly Message[]): readonly string[] => messages.map(({ role }) => role)

const resultsOf = (messages: readonly Message[]): readonly ToolResult[] =>
  messages.flatMap((message) => (message.role === 'tool' ? message.results : []))

/** Results as `name outcome: text`. */
const shown = (results: readonly ToolResult[]): readonly string[] =>
  results.map(({ name, outcome, content }) => `${name} ${outcome}: ${textOf(content)}`)

const calls = (...names: readonly string[]): ScriptedReply => ({
  toolCalls: names.map((name) => ({ name, input: {} })),
})

/** Cancels a run as soon as one tool has ended, with another still at work. */
async function stopHalfWay(): Promise<{ set: Stage; result: RunResult; events: readonly RuntimeEvent[] }> {
  const usage = { inputTokens: 40, outputTokens: 9 }
  const set = stage({
    steps: [{ text: 'Both at once.', ...calls('quick', 'slow'), usage }],
    tools: [
      testTool({ name: 'quick', run: () => 'the finished work' }),
      testTool({ name: 'slow', run: () => new Promise(() => {}) }),
    ],
  })
  const run = set.start()
  run.events$.subscribe((event) => {
    if (event.type === 'tool_result' && event.name === 'quick') void run.cancel('the user pressed stop')
  })
  const result = await set.settle(run.result)
  return { set, result, events: await set.eventsOf(run) }
}

describe('a reply that was cut', () => {
  it('at its length behind a whole tool call leaves no call without a result, and the next turn is accepted', async () => {
    const look = testTool({ name: 'look' })
    const set = stage({
      steps: [{ text: 'Let me', ...calls('look'), stopReason: 'max_tokens' }],
      tools: [look],
    })
    const result = await set.play()
    expect(result).toMatchObject({ reason: 'output_truncated', text: 'Let me' })
    expect(look.runs).toEqual([])
    const messages = nextRequest(await set.eventsOf(result.runId))
    expect(rolesOf(messages)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(shown(resultsOf(messages))).toEqual([
      'look skipped: The reply that asked for this call was not complete. Nothing was run.',
    ])
  })

  it('by a lost connection is tried again, and its calls are neither run nor repeated', async () => {
    const look = testTool({ name: 'look', run: () => 'seen' })
    const steps: ScriptedStep[] = [{ ...calls('look'), fail: 'truncated' }, calls('look'), { text: 'Done.' }]
    const set = stage({ steps, tools: [look] })
    const result = await set.play()
    expect(result).toMatchObject({ reason: 'answered', turns: 2, toolCalls: 1 })
    expect(look.runs).toHaveLength(1)
    expect(shown(resultsOf(nextRequest(await set.eventsOf(result.runId))))).toEqual(['look success: seen'])
  })

  it('with two calls under one provider id leaves two calls apart, each with its own result', async () => {
    const look = testTool({ name: 'look', run: ({ input }) => `at ${JSON.stringify(input['at'])}` })
    const set = stage({
      steps: [
        { toolCalls: ['sky', 'sea'].map((at) => ({ id: 'same', name: 'look', input: { at } })) },
        { text: 'Done.' },
      ],
      tools: [look],
    })
    const result = await set.play()
    const events = await set.eventsOf(result.runId)
    const requests = ofType(events, 'tool_request_ready')
    expect(requests.map(({ providerCallId }) => providerCallId)).toEqual(['same', 'same'])
    const results = resultsOf(nextRequest(events))
    expect(shown(results)).toEqual(['look success: at "sky"', 'look success: at "sea"'])
    expect(results.map(({ toolCallId }) => toolCallId)).toEqual(requests.map(({ toolCallId }) => toolCallId))
    expect(new Set(results.map(({ toolCallId }) => toolCallId)).size).toBe(2)
  })
})

describe('a stop while tools run', () => {
  it('keeps the finished result and the spend, where users lost both', async () => {
    const { result } = await stopHalfWay()
    expect(result).toMatchObject({
      ...{ status: 'done', reason: 'cancelled', text: 'Both at once.', toolCalls: 2 },
      usage: { inputTokens: 40, outputTokens: 9 },
    })
  })

  it('leaves no call dangling when the user writes again: the finished result is shown, the other says what became of it', async () => {
    const { events } = await stopHalfWay()
    const messages = nextRequest(events)
    expect(rolesOf(messages)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(shown(resultsOf(messages))).toEqual([
      'quick success: the finished work',
      'slow cancelled: the user pressed stop',
    ])
  })

  it('is followed by no more turn, not even an empty one', async () => {
    const { set, events } = await stopHalfWay()
    expect(set.model.requests).toHaveLength(1)
    expect(ofType(events, 'assistant_message_finished')).toHaveLength(1)
    expect(events.at(-1)?.type).toBe('run_finished')
  })

  it('is on disk, not in memory: another process reads what happened and starts nothing again', async () => {
    const { set, result } = await stopHalfWay()
    const quick = testTool({ name: 'quick' })
    const other = stage({ ledger: set.ledger, clock: set.clock, tools: [quick] })
    const found = await other.settle(other.runtime.resume(result.runId).result)
    expect(found).toEqual(result)
    expect([quick.runs.length, other.model.requests.length]).toEqual([0, 0])
  })

  it('by a crash runs only the unfinished tool again', async () => {
    const ledger = memoryLedger()
    const quick = testTool({ name: 'quick', run: () => 'first' })
    const first = stage({
      ...{ ledger, steps: [calls('quick', 'slow')] },
      tools: [quick, testTool({ name: 'slow', run: () => new Promise(() => {}) })],
    })
    const run = first.start()
    const half = new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => type === 'tool_result' && resolve())
    })
    await first.settle(half)
    const again = [
      testTool({ name: 'quick', run: () => 'again' }),
      testTool({ name: 'slow', run: () => 'late' }),
    ]
    const second = stage({ ledger, clock: first.clock, tools: again })
    const result = await second.settle(second.runtime.resume(run.id).result)
    expect(result).toMatchObject({ reason: 'answered', text: 'Done.', toolCalls: 2 })
    expect(again.map(({ runs }) => runs.length)).toEqual([0, 1])
    expect(shown(resultsOf(second.model.requests[0]!.messages))).toEqual([
      'quick success: first',
      'slow success: late',
    ])
  })
})

describe('a limit on turns', () => {
  const eager = (): ScriptedStep[] => [
    calls('look'),
    calls('look'),
    ({ toolChoice }) => (toolChoice.type === 'none' ? { text: 'This far I came.' } : calls('look')),
  ]

  it('ends with an answer of the model, where users got an empty text or a canned one', async () => {
    let count = 0
    const look = testTool({ name: 'look', run: () => `look ${++count}` })
    const set = stage({ steps: eager(), tools: [look], limits: { turnsMax: 2 } })
    const result = await set.play()
    expect(result).toMatchObject({ reason: 'turn_limit', text: 'This far I came.', toolCalls: 2 })
    // It answers what it has seen: both results stand before it.
    expect(shown(resultsOf(set.model.requests[2]!.messages))).toEqual([
      'look success: look 1',
      'look success: look 2',
    ])
    const messages = nextRequest(await set.eventsOf(result.runId))
    expect(rolesOf(messages).slice(-2)).toEqual(['assistant', 'user'])
  })

  it('that stops at once loses no executed tool call: the conversation has the input, both calls and both results', async () => {
    let count = 0
    const look = testTool({ name: 'look', run: () => `look ${++count}` })
    const set = stage({ steps: eager(), tools: [look], limits: { turnsMax: 2, onLimit: 'stop' } })
    const result = await set.play('Look twice.')
    expect(result).toMatchObject({ status: 'done', reason: 'turn_limit', toolCalls: 2 })
    const messages = nextRequest(await recorded(set.ledger, result.runId))
    expect(rolesOf(messages)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool', 'user'])
    expect(messages[0]).toMatchObject({ parts: [{ text: 'Look twice.' }] })
    expect(shown(resultsOf(messages))).toEqual(['look success: look 1', 'look success: look 2'])
  })
})

describe('a provider that fails behind an executed tool', () => {
  it('loses neither the input nor the result', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', run: () => 'paid' })
    const set = stage({ steps: [calls('pay'), { fail: 'authentication' }], tools: [pay] })
    const result = await set.play('Pay the bill.')
    expect(result).toMatchObject({ status: 'done', reason: 'model_failed', toolCalls: 1 })
    const messages = nextRequest(await recorded(set.ledger, result.runId))
    expect(messages[0]).toMatchObject({ parts: [{ text: 'Pay the bill.' }] })
    expect(shown(resultsOf(messages))).toEqual(['pay success: paid'])
    expect(pay.runs).toHaveLength(1)
  })

  it('and comes back gets the result that is there, and the tool is not run again', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', run: () => 'paid' })
    const steps: ScriptedStep[] = [
      calls('pay'),
      { fail: 'server' },
      { fail: 'overloaded' },
      { text: 'Paid.' },
    ]
    const set = stage({ steps, tools: [pay] })
    expect(await set.play()).toMatchObject({ reason: 'answered', text: 'Paid.', turns: 2, toolCalls: 1 })
    expect(pay.runs).toHaveLength(1)
    const behind = set.model.requests.slice(1).map(({ messages }) => shown(resultsOf(messages)))
    expect(behind).toEqual([['pay success: paid'], ['pay success: paid'], ['pay success: paid']])
  })
})
