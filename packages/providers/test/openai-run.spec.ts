import { evolve, toTranscript } from '@tallystick/core/machine'
import type { RunState } from '@tallystick/core'
import { checkLaws } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { chatBody, responsesBody } from './kit/openai-requests.ts'
import { brokenChatRules } from './kit/chat-rules.ts'
import type { Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import {
  args,
  content,
  counted,
  created,
  finish,
  incomplete,
  added,
  message,
  reasoning,
  role,
  functionCall,
  callPieces,
} from './kit/openai-streams.ts'
import { openaiWires, type WireUnderTest } from './kit/wires.ts'
import { forbidUnhandledRejections } from './kit/quiet.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'
import { recordedRun, type RecordedRun, type Watch } from './kit/recorded-run.ts'

forbidUnhandledRejections()

/** A run of the real runtime against these answers. */
const run = (wire: WireUnderTest, answers: readonly Answer[], watch?: Watch): Promise<RecordedRun> =>
  recordedRun((url) => wire.make({ apiKey: 'k', baseURL: url }), answers, watch)

/** What differs between the wires in a story. */
interface Pieces {
  readonly cutInACall: readonly object[]
  readonly atItsLimit: readonly object[]
  readonly begun: readonly object[]
  readonly rules: (body: Loose) => string[]
  /** The body that a run would send if it continued from here. */
  readonly next: (state: RunState) => Loose
}

const responsesCut = [
  ...[created(), ...reasoning(0, 'ZW5j'), ...functionCall(1, 'call_1', 'get_weather', '{"city":"Seoul"}')],
  ...[added(2, { type: 'function_call', id: 'fc_2', call_id: 'call_2', name: 'get_time', arguments: '' })],
  args(2, '{"zone": "As'),
]
const chatCut = [
  ...[role, ...callPieces(0, 'call_1', 'get_weather', '{"city":"Seoul"}')],
  ...callPieces(1, 'call_2', 'get_time', '{"zone": "As'),
]
const piecesOf: { readonly [wire: string]: Pieces } = {
  Responses: {
    cutInACall: counted(responsesCut),
    atItsLimit: counted(responsesCut, incomplete('max_output_tokens')),
    begun: counted(created(), reasoning(0, 'ZW5j'), message(1, 'It ').slice(0, -2)),
    rules: (body) => brokenResponsesRules(body),
    next: (state) => {
      return responsesBody(toTranscript(state))
    },
  },
  'Chat Completions': {
    cutInACall: chatCut,
    atItsLimit: [...chatCut, finish('length')],
    begun: [role, content('It ')],
    rules: (body) => brokenChatRules(body),
    next: (state) => {
      return chatBody(toTranscript(state))
    },
  },
}

function storiesOf(wire: WireUnderTest): { readonly [title: string]: () => Promise<RecordedRun> } {
  const { cutInACall, atItsLimit, begun } = piecesOf[wire.name]!
  const whole: Answer = { pieces: [wire.bytes(wire.rich)] }
  const answer: Answer = { pieces: [wire.bytes(wire.hello)] }
  const records = (events: readonly object[]) => events.map((event) => wire.record(event))
  const broken = [...cutInACall, wire.failing!('server_error', 'Oops')]
  return {
    'that calls tools and answers': () => run(wire, [whole, answer]),
    'whose reply is cut at its token limit, inside a call': () =>
      run(wire, [{ pieces: records(atItsLimit) }, answer]),
    'whose reply breaks off inside a call, and is asked for again': () =>
      run(wire, [{ pieces: records(broken) }, whole, answer]),
    'whose every reply breaks off': () => run(wire, [{ pieces: records(cutInACall) }]),
    'that is cancelled in the middle of a word': () =>
      run(wire, [{ pieces: records(begun), ending: 'stall' }], (event, started) => {
        if (event.type === 'assistant_text_delta') void started.cancel('enough')
      }),
    'that meets a full context': () =>
      run(wire, [
        {
          ...{ status: 400, headers: { 'content-type': 'application/json' } },
          pieces: [JSON.stringify({ error: { code: 'context_length_exceeded', message: 'Too long' } })],
        },
      ]),
  }
}

describe.each(openaiWires)('a run over $name', (wire) => {
  const stories = storiesOf(wire)
  const { rules, next } = piecesOf[wire.name]!

  it.each(Object.keys(stories))(
    '%s breaks no law, and sends nothing that the vendor refuses',
    async (title) => {
      const { server, events } = await stories[title]!()
      expect(checkLaws(events)).toEqual([])
      expect(server.arrivals.map(({ body }) => rules(body))).toEqual(server.arrivals.map(() => []))
    },
  )

  it.each(Object.keys(stories))(
    '%s could continue from any of its events with a request that the vendor takes',
    async (title) => {
      const { events } = await stories[title]!()
      let state: RunState | undefined
      const refused = events.flatMap((event) => {
        state = evolve(state, event)
        return rules(next(state)).map((rule) => `${event.seq} ${event.type}: ${rule}`)
      })
      expect(refused).toEqual([])
    },
  )

  it('sends the reply back with the results after it, and answers', async () => {
    const { server, result } = await stories['that calls tools and answers']!()
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Hello' })
    expect(result.usage).toMatchObject({ inputTokens: 120 + 12, outputTokens: 64 + 20, cacheReadTokens: 100 })
    const sent = server.arrivals[1]!.body
    const items: Loose[] = sent['input'] ?? sent['messages']
    expect(items.map((item) => item.type ?? item.role)).toEqual(
      wire.name === 'Responses'
        ? [
            ...[
              'user',
              'reasoning',
              'web_search_call',
              'reasoning',
              'message',
              'function_call',
              'function_call',
            ],
            ...['function_call_output', 'function_call_output'],
          ]
        : ['system', 'user', 'assistant', 'tool', 'tool'],
    )
    expect(
      items.slice(-2).map((item) => [item.call_id ?? item.tool_call_id, item.output ?? item.content]),
    ).toEqual([
      ['call_1', '{"city":"Seoul","days":3}'],
      ['call_2', '{}'],
    ])
  })

  it('runs no call of a reply that was cut', async () => {
    const { events } = await stories['whose reply is cut at its token limit, inside a call']!()
    const types = events.map(({ type }) => type)
    expect(types).toContain('tool_request_ready')
    expect(types).not.toContain('tool_started')
  })

  it('tries a broken reply again, and never splices the two', async () => {
    const { events, result, server } =
      await stories['whose reply breaks off inside a call, and is asked for again']!()
    expect(events.filter(({ type }) => type === 'model_stream_failed')).toMatchObject([
      { failure: { class: 'server', retryable: true } },
    ])
    expect(server.arrivals[1]?.body).toEqual(server.arrivals[0]?.body)
    expect(result.text).toBe('Hello')
  })

  it.each([
    ['whose every reply breaks off', 'model_failed'],
    ['that is cancelled in the middle of a word', 'cancelled'],
    ['that meets a full context', 'context_overflow'],
  ])('%s ends as %s', async (title, reason) => {
    expect((await stories[title]!()).result).toMatchObject({ status: 'done', reason })
  })
})
