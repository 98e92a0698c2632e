// What users of agent runtimes have run into, one test each: the title says what they saw, and what is so here. In the
// order of the loop: replies that were cut, stops, limits, failures. What is left of a run is what the next run of its
// conversation shows the model. Conversations over many runs: session-after-bad-endings.spec.ts; approvals and those who watch:
// approval-runs-once.spec.ts.
import { describe, expect, it } from 'vitest'
import { memoryLedger, type RunResult, type RuntimeEvent } from '@tallystick/core'
import { testTool, type ScriptedReply, type ScriptedStep } from '@tallystick/testkit'
import { begin, converse, newProcess, nextRequest, readable, resultsOf, shown } from './conversation.ts'
import { ofType, type Stage } from './stage.ts'

const calls = (...names: readonly string[]): ScriptedReply => ({
  toolCalls: names.map((name) => ({ name, input: {} })),
})

/** Cancels a run as soon as one tool has ended, with another still at work. */
async function stopHalfWay(): Promise<{ set: Stage; result: RunResult; events: readonly RuntimeEvent[] }> {
  const usage = { inputTokens: 40, outputTokens: 9 }
  const set = newProcess({
    steps: [{ text: 'Both at once.', ...calls('quick', 'slow'), usage }],
    tools: [
      testTool({ name: 'quick', run: () => 'the finished work' }),
      testTool({ name: 'slow', run: () => new Promise(() => {}) }),
    ],
  })
  const run = begin(set)
  run.events$.subscribe((event) => {
    if (event.type === 'tool_result' && event.name === 'quick') void run.cancel('the user pressed stop')
  })
  const result = await set.waitUntilSettled(run.result)
  return { set, result, events: await set.eventsOf(run) }
}

describe('a reply that was cut', () => {
  it('at its length after a whole tool call leaves no call without a result, and the next turn is accepted', async () => {
    const look = testTool({ name: 'look' })
    const set = newProcess({
      steps: [{ text: 'Let me', ...calls('look'), stopReason: 'max_tokens' }],
      tools: [look],
    })
    const result = await converse(set)
    expect(result).toMatchObject({ reason: 'output_truncated', text: 'Let me' })
    expect(look.runs).toEqual([])
    expect(readable(await nextRequest(set))).toEqual([
      ...['user: Go.', 'assistant: Let me', 'asks look'],
      'look skipped: The reply that asked for this call was not complete. Nothing was run.',
      'user: And now?',
    ])
  })

  it('by a lost connection is tried again, and its calls are neither run nor repeated', async () => {
    const look = testTool({ name: 'look', run: () => 'seen' })
    const steps: ScriptedStep[] = [{ ...calls('look'), fail: 'truncated' }, calls('look'), { text: 'Done.' }]
    const set = newProcess({ steps, tools: [look] })
    const result = await converse(set)
    expect(result).toMatchObject({ reason: 'answered', turns: 2, toolCalls: 1 })
    expect(look.runs).toHaveLength(1)
    expect(shown(resultsOf(await nextRequest(set)))).toEqual(['look success: seen'])
  })

  it('with two calls under one provider id leaves two calls apart, each with its own result', async () => {
    const look = testTool({ name: 'look', run: ({ input }) => `at ${JSON.stringify(input['at'])}` })
    const set = newProcess({
      steps: [
        { toolCalls: ['sky', 'sea'].map((at) => ({ id: 'same', name: 'look', input: { at } })) },
        { text: 'Done.' },
      ],
      tools: [look],
    })
    const result = await converse(set)
    const events = await set.eventsOf(result.runId)
    const requests = ofType(events, 'tool_request_ready')
    expect(requests.map(({ providerCallId }) => providerCallId)).toEqual(['same', 'same'])
    const results = resultsOf(await nextRequest(set))
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
    const { set } = await stopHalfWay()
    expect(readable(await nextRequest(set))).toEqual([
      ...['user: Go.', 'assistant: Both at once.', 'asks quick', 'asks slow'],
      ...['quick success: the finished work', 'slow cancelled: the user pressed stop', 'user: And now?'],
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
    const other = newProcess({ ledger: set.ledger, clock: set.clock, tools: [quick] })
    const found = await other.waitUntilSettled(other.runtime.resume(result.runId).result)
    expect(found).toEqual(result)
    expect([quick.runs.length, other.model.requests.length]).toEqual([0, 0])
  })

  it('by a crash runs only the unfinished tool again', async () => {
    const ledger = memoryLedger()
    const quick = testTool({ name: 'quick', run: () => 'first' })
    const first = newProcess({
      ...{ ledger, steps: [calls('quick', 'slow')] },
      tools: [quick, testTool({ name: 'slow', run: () => new Promise(() => {}) })],
    })
    const run = begin(first)
    const half = new Promise<void>((resolve) => {
      run.events$.subscribe(({ type }) => type === 'tool_result' && resolve())
    })
    await first.waitUntilSettled(half)
    const again = [
      testTool({ name: 'quick', run: () => 'again' }),
      testTool({ name: 'slow', run: () => 'late' }),
    ]
    const second = newProcess({ ledger, clock: first.clock, tools: again })
    const result = await second.waitUntilSettled(second.runtime.resume(run.id, { takeOver: true }).result)
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
    const set = newProcess({ steps: eager(), tools: [look], limits: { maxTurns: 3 } })
    const result = await converse(set)
    expect(result).toMatchObject({ reason: 'turn_limit', text: 'This far I came.', toolCalls: 2 })
    // It answers what it has seen: both results come before it.
    expect(shown(resultsOf(set.model.requests[2]!.messages))).toEqual([
      'look success: look 1',
      'look success: look 2',
    ])
    expect(readable(await nextRequest(set)).slice(-3)).toEqual([
      ...['look success: look 2', 'assistant: This far I came.', 'user: And now?'],
    ])
  })

  it('that stops at once loses no executed tool call: the conversation has the input, both calls and both results', async () => {
    let count = 0
    const look = testTool({ name: 'look', run: () => `look ${++count}` })
    const set = newProcess({ steps: eager(), tools: [look], limits: { maxTurns: 2, onLimit: 'stop' } })
    const result = await converse(set, 'Look twice.')
    expect(result).toMatchObject({ status: 'done', reason: 'turn_limit', toolCalls: 2 })
    expect(readable(await nextRequest(set))).toEqual([
      ...['user: Look twice.', 'asks look', 'look success: look 1'],
      ...['asks look', 'look success: look 2', 'user: And now?'],
    ])
  })
})

describe('a provider that fails after an executed tool', () => {
  it('loses neither the input nor the result', async () => {
    const pay = testTool({ name: 'pay', effect: 'write', run: () => 'paid' })
    const set = newProcess({ steps: [calls('pay'), { fail: 'authentication' }], tools: [pay] })
    const result = await converse(set, 'Pay the bill.')
    expect(result).toMatchObject({ status: 'done', reason: 'model_failed', toolCalls: 1 })
    expect(readable(await nextRequest(set))).toEqual([
      ...['user: Pay the bill.', 'asks pay', 'pay success: paid', 'user: And now?'],
    ])
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
    const set = newProcess({ steps, tools: [pay] })
    expect(await converse(set)).toMatchObject({ reason: 'answered', text: 'Paid.', turns: 2, toolCalls: 1 })
    expect(pay.runs).toHaveLength(1)
    const behind = set.model.requests.slice(1).map(({ messages }) => shown(resultsOf(messages)))
    expect(behind).toEqual([['pay success: paid'], ['pay success: paid'], ['pay success: paid']])
  })
})
