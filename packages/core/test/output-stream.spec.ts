// Replies in flight: transforms change what subscribers see, the ledger holds both, and a policy says what later turns see.
import { from, toArray, firstValueFrom, Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Message,
  type Model,
  outputMask,
  type OutputStreamOptions,
  outputTransform,
  type RuntimeEvent,
  joinText,
} from '@tallystick/core'
import { toShownEvent } from '@tallystick/core/internal'
import { auditAll } from '@tallystick/core/machine'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import {
  checkLaws,
  manualClock,
  scriptedModel,
  testTool,
  waitUntilSettled,
  sampleRunId,
} from '@tallystick/testkit'
import { ofType, recorded } from './stage.ts'

const cards = outputMask({ name: 'cards', pattern: /\d{4}-\d{4}/g, window: 9, replacement: '****' })
const secret = /4242-4242/

/** A model whose replies come as these reports, call after call. */
function reporting(...replies: readonly (readonly ModelSignal[])[]): Model {
  let call = 0
  return {
    ...{ provider: 'reporting', api: 'script', modelId: 'reporting' },
    stream: () => from(replies[call++] ?? []),
  }
}

const text = (said: string, part = 0): ModelSignal => ({ type: 'model_text', part, text: said })
const finished = (...parts: readonly string[]): ModelSignal => ({
  type: 'model_finished',
  stopReason: 'end',
  parts: parts.map((said, part) => ({ type: 'text', part, text: said })),
})

async function played(outputStream: OutputStreamOptions | undefined, options: Partial<AgentOptions> = {}) {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const agent = defineAgent({
    name: 'desk',
    instructions: 'Help.',
    model: scriptedModel([]),
    outputStream,
    ...options,
  })
  const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.')
  const result = await waitUntilSettled(clock, run.result)
  const events = await recorded(ledger, run.id)
  expect(checkLaws(events)).toEqual([])
  auditAll(events)
  return { run, result, events, clock, ledger, agent }
}

const shown = (events: readonly RuntimeEvent[]): string =>
  ofType(events, 'assistant_text_delta')
    .map((event) => event.text)
    .join('')
const written = (events: readonly RuntimeEvent[]): string =>
  ofType(events, 'assistant_text_delta')
    .map((event) => event.written ?? event.text)
    .join('')
const saidBy = (message: Message | undefined): string =>
  message?.role === 'assistant' ? joinText(message.parts) : ''

describe('what subscribers see', () => {
  it('given a mask, when a match comes in pieces, then no subscriber sees it, and the ledger holds both texts', async () => {
    const pieces = ['Card 42', '42-', '424', '2 is yours.']
    const model = reporting([...pieces.map((each) => text(each)), finished(pieces.join(''))])
    const { run, result, events } = await played({ transforms: [cards] }, { model })
    expect(result).toMatchObject({
      status: 'done',
      text: 'Card **** is yours.',
      output: 'Card **** is yours.',
    })
    const streams = [run.text$, run.textUpdates$, run.events$] as readonly Observable<unknown>[]
    for (const stream of streams)
      expect(JSON.stringify(await firstValueFrom(stream.pipe(toArray())))).not.toMatch(secret)
    const iterated: unknown[] = []
    for await (const event of run) iterated.push(event)
    expect(JSON.stringify(iterated)).not.toMatch(secret)
    expect(iterated).toEqual(events.map(toShownEvent))
    expect(shown(events)).toBe('Card **** is yours.')
    expect(written(events)).toBe('Card 4242-4242 is yours.')
    expect(ofType(events, 'assistant_message_finished')).toMatchObject([
      {
        parts: [{ type: 'text', text: 'Card **** is yours.' }],
        written: [{ index: 0, part: { type: 'text', text: 'Card 4242-4242 is yours.' } }],
      },
    ])
  })

  it('given whole sentences, when pieces come, then each sentence is shown once it is whole, the last one at the end', async () => {
    const asked: string[] = []
    const sentences = outputTransform({
      name: 'sentences',
      show: (said, { agent, kind, turn }) => {
        asked.push(`${agent} ${kind} ${turn}: ${said}`)
        return said.toUpperCase()
      },
    })
    const model = reporting([text('One. T'), text('wo.'), text(' Three'), finished('One. Two. Three')])
    const { events } = await played({ transforms: [sentences] }, { model })
    expect(asked).toEqual(['desk text 1: One. ', 'desk text 1: Two. ', 'desk text 1: Three'])
    expect(ofType(events, 'assistant_text_delta').map((event) => [event.text, event.written])).toEqual([
      ['ONE. ', 'One. T'],
      ['', 'wo.'],
      ['TWO. ', ' Three'],
      ['THREE', ''],
    ])
  })

  it('given a bounded window, when a unit is longer, then it is handed over in texts of that size, and parts no character', async () => {
    const asked: string[] = []
    const bounded = outputTransform({
      name: 'bounded',
      unit: 'part',
      maxChars: 4,
      show: (said) => (asked.push(said), said),
    })
    const said = 'abc😀def😀😀gh'
    const model = reporting([text(said.slice(0, 4)), text(said.slice(4)), finished(said)])
    const { result } = await played({ transforms: [bounded] }, { model })
    expect(asked.join('')).toBe(said)
    expect(asked.every((each) => each.length <= 4 && each.isWellFormed())).toBe(true)
    expect(result.text).toBe(said)
  })

  it('given a transform that changes nothing, then the record is that of a run without it, but for its name', async () => {
    const same = outputTransform({ name: 'same', unit: 'piece', show: (said) => said })
    const steps = [{ reasoning: 'Hm.', text: 'All is well.' }]
    const [plain, through] = [
      await played(undefined, { model: scriptedModel(steps) }),
      await played({ transforms: [same] }, { model: scriptedModel(steps) }),
    ]
    const replies = (events: readonly RuntimeEvent[]) =>
      events
        .filter(({ type }) => type.startsWith('assistant_'))
        .map(({ runId: _id, at: _at, ...event }) => event)
    expect(replies(through.events)).toEqual(replies(plain.events))
    expect(through.agent.definition.policy?.outputStream).toEqual({ transforms: ['same'] })
    expect(plain.agent.definition.policy).not.toHaveProperty('outputStream')
  })

  it('leaves the pattern of a mask as it was, for other code that uses it', () => {
    const pattern = /\d{4}/g
    pattern.lastIndex = 3
    const mask = outputMask({ name: 'digits', pattern, window: 4, replacement: '*' })
    const writer = mask.begin({
      runId: sampleRunId(1),
      agent: 'a',
      turn: 1,
      kind: 'text',
      context: undefined,
    })
    expect(writer.write('1234 and 5678.') + writer.end()).toBe('* and *.')
    expect(pattern.lastIndex).toBe(3)
  })

  it('given several transforms, of the agent and of its runtime, then each takes what the one before it shows', async () => {
    const upper = outputTransform({ name: 'upper', unit: 'piece', show: (said) => said.toUpperCase() })
    const stars = outputMask({ name: 'stars', pattern: /CARD/g, window: 4, replacement: '*' })
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const model = scriptedModel([{ text: 'A card, one more card.' }])
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model,
      outputStream: { transforms: [upper] },
    })
    const run = createRuntime({
      ledger,
      host: { clock },
      outputStream: { transforms: [stars], nextTurn: 'shown' },
    }).run(agent, 'Go.')
    const result = await waitUntilSettled(clock, run.result)
    expect(result.text).toBe('A *, ONE MORE *.')
    const [started] = ofType(await recorded(ledger, run.id), 'run_started')
    expect(started?.definition.policy?.outputStream).toEqual({
      transforms: ['upper', 'stars'],
      nextTurn: 'shown',
    })
  })

  it('given kinds, then texts of the other kind are shown as they are', async () => {
    const none = outputTransform({ name: 'none', kinds: ['reasoning'], unit: 'piece', show: () => '' })
    const { result, events } = await played(
      { transforms: [none] },
      { model: scriptedModel([{ reasoning: 'Secret thoughts.', text: 'Hello.' }]) },
    )
    expect(result.text).toBe('Hello.')
    expect(ofType(events, 'assistant_reasoning_delta').every((event) => event.text === '')).toBe(true)
    expect(ofType(events, 'assistant_message_finished')[0]?.written).toMatchObject([{ index: 0 }])
  })

  it('given a schema of the answer, then the answer is read from what was shown', async () => {
    const output = {
      type: 'object',
      properties: { card: { type: 'string' } },
      required: ['card'],
      additionalProperties: false,
    } as const
    const model = scriptedModel([{ text: '{"card":"4242-4242"}' }])
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model,
      output,
      outputStream: { transforms: [cards] },
    })
    const clock = manualClock()
    const result = await waitUntilSettled(
      clock,
      createRuntime({ ledger: memoryLedger(), host: { clock } }).run(agent, 'Go.').result,
    )
    expect(result.output).toEqual({ card: '****' })
  })
})

describe('what later turns see', () => {
  const look = testTool({ name: 'look', run: () => 'there' })
  const steps = [
    { reasoning: 'Think of 4242-4242.', text: 'Card 4242-4242.', toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Done.' },
  ]

  it.each([
    [undefined, 'Card 4242-4242.'],
    ['written', 'Card 4242-4242.'],
    ['shown', 'Card ****.'],
  ] as const)('given the policy %s, then the next turn sees %s', async (nextTurn, said) => {
    const model = scriptedModel(steps)
    const { result } = await played({ transforms: [cards], nextTurn }, { model, tools: [look] })
    const reply = model.requests[1]?.messages[1]
    expect(saidBy(reply)).toBe(said)
    // Reasoning is as it was written: a provider takes it back in no other form.
    expect(reply?.role === 'assistant' && reply.parts[0]).toMatchObject({ text: 'Think of 4242-4242.' })
    expect(saidBy(result.messages[1])).toBe(said)
  })

  it('given that nothing is shown and later turns see what was shown, then the history has no empty text', async () => {
    const nothing = outputTransform({ name: 'nothing', unit: 'part', show: () => '' })
    const model = scriptedModel([{ text: 'Psst.' }, { text: 'Psst.' }])
    const clock = manualClock()
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model,
      outputStream: { transforms: [nothing], nextTurn: 'shown' },
    })
    const runtime = createRuntime({ ledger: memoryLedger(), host: { clock } })
    const first = await waitUntilSettled(clock, runtime.run(agent, 'One.', { sessionId: 'talk' }).result)
    expect(first).toMatchObject({ status: 'done', text: '' })
    await waitUntilSettled(clock, runtime.run(agent, 'Two.', { sessionId: 'talk' }).result)
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'user'])
  })

  it('given an output guardrail that replaces, when nothing of the reply is in the history, then its replacement is', async () => {
    const nothing = outputTransform({ name: 'nothing', unit: 'part', show: () => '' })
    const { result } = await played(
      { transforms: [nothing], nextTurn: 'shown' },
      {
        model: scriptedModel([{ text: 'Psst.' }]),
        guardrails: [{ name: 'kind', on: 'output', check: () => ({ replace: 'Ask later.' }) }],
      },
    )
    expect(result.messages.map((message) => message.role)).toEqual(['user', 'assistant'])
    expect(saidBy(result.messages[1])).toBe('Ask later.')
  })
})

describe('replies that break off', () => {
  it('given a run that is cancelled, then what was held back is on record as written, and is not shown', async () => {
    const [clock, ledger] = [manualClock(), memoryLedger()]
    const model: Model = {
      ...{ provider: 'reporting', api: 'script', modelId: 'reporting' },
      stream: () => new Observable((subscriber) => subscriber.next(text('Hello. Card 4242-42'))),
    }
    const agent = defineAgent({
      name: 'desk',
      instructions: 'Help.',
      model,
      outputStream: { transforms: [cards] },
    })
    const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.')
    await firstValueFrom(run.textUpdates$)
    await waitUntilSettled(clock, run.cancel())
    const result = await waitUntilSettled(clock, run.result)
    const events = await recorded(ledger, run.id)
    expect(result).toMatchObject({ reason: 'cancelled', text: 'Hello. Car' })
    expect(checkLaws(events)).toEqual([])
    expect(ofType(events, 'assistant_message_finished')).toMatchObject([
      { partial: true, written: [{ part: { text: 'Hello. Card 4242-42' } }] },
    ])
    expect(saidBy(result.messages[1])).toBe('Hello. Card 4242-42')
  })

  it('given a failed attempt, then the next one begins with nothing held back', async () => {
    const model = scriptedModel([{ text: 'Card 4242', fail: 'overloaded' }, { text: '-4242 it is.' }])
    const { result } = await played({ transforms: [cards] }, { model })
    expect(result.text).toBe('-4242 it is.')
  })

  it('given a provider that takes a text back, then what replaces it goes through the transforms from its beginning', async () => {
    const model = reporting([
      text('Card 4242-'),
      { type: 'model_text', part: 0, text: '1111-2222 and so on', replaces: true },
      finished('1111-2222 and so on'),
    ])
    const { result, events } = await played({ transforms: [cards] }, { model })
    expect(result.text).toBe('**** and so on')
    expect(saidBy(result.messages[1])).toBe('1111-2222 and so on')
    expect(
      ofType(events, 'assistant_text_delta').at(-1)?.replaces ??
        ofType(events, 'assistant_text_delta')[1]?.replaces,
    ).toBe(true)
  })

  it('given more of a part after a later one began, then all of it is shown anew', async () => {
    const model = reporting([
      text('Card 4242-', 0),
      text('Second.', 1),
      text('4242!', 0),
      finished('Card 4242-4242!', 'Second.'),
    ])
    const { run, result } = await played({ transforms: [cards] }, { model })
    expect(result.text).toBe('Card ****!Second.')
    const updates = await firstValueFrom(run.textUpdates$.pipe(toArray()))
    expect(JSON.stringify(updates)).not.toMatch(secret)
  })

  it('given a finished reply that is not what was streamed, then the call fails and nothing of the reply is shown as it is', async () => {
    const model = reporting(
      [text('Card 4242'), finished('Other 4242-4242')],
      [text('Fine.'), finished('Fine.')],
    )
    const { result, events } = await played({ transforms: [cards] }, { model, retry: { maxAttempts: 1 } })
    expect(result).toMatchObject({ reason: 'model_failed', failure: { class: 'protocol', retryable: false } })
    expect(JSON.stringify(events)).not.toMatch(secret)
  })

  it('given an adapter that says what only transforms may say, then that is ignored', async () => {
    const forged = { ...text('Fine.'), written: 42 } as unknown as ModelSignal
    const { result, events } = await played(undefined, { model: reporting([forged, finished('Fine.')]) })
    expect(result.text).toBe('Fine.')
    expect(JSON.stringify(events)).not.toContain('written"')
  })
})
