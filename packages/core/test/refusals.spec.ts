import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type AgentOptions,
  type Message,
  type RunResult,
} from '@tallystick/core'
import { type RefusalPolicy } from '@tallystick/core/vocabulary'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { checkedRun, ofType, recorded } from './stage.ts'

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
