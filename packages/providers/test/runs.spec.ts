// Runs of the real runtime over every wire: what they record, and what they send.
import { createAnthropic } from '@ai-sdk/anthropic'
import type { Message, Model, RunState } from '@tallystick/core'
import { evolve, toTranscript } from '@tallystick/core/machine'
import { checkLaws } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { renderRequest as renderOllama } from '../src/ollama/request.ts'
import { renderCall } from './kit/ai-sdk-call.ts'
import { withBlocks } from './kit/ai-sdk-wires.ts'
import { contentOf } from './kit/anthropic-content.ts'
import { sseBytes } from './kit/bytes.ts'
import { brokenChatRules } from './kit/chat-rules.ts'
import { request } from './kit/collect.ts'
import { body as messagesBody } from './kit/history.ts'
import { brokenRules } from './kit/history-rules.ts'
import type { Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { brokenRules as brokenByOllama } from './kit/ollama-history-rules.ts'
import * as lines from './kit/ollama-lines.ts'
import { chatBody, responsesBody } from './kit/openai-requests.ts'
import * as openai from './kit/openai-streams.ts'
import { forbidUnhandledRejections } from './kit/quiet.ts'
import { recordedRun, type RecordedRun } from './kit/recorded-run.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'
import {
  done,
  json,
  open,
  rich,
  start,
  stop,
  text,
  textBlock,
  thinkingBlock,
  toolBlock,
} from './kit/streams.ts'
import { openaiWires } from './kit/wires.ts'

forbidUnhandledRejections()

/** The answers of a wire that the stories are told with. */
interface Wire {
  readonly model: (url: string) => Model
  /** A reply that calls tools, and one that answers after them. */
  readonly whole: Answer
  readonly answer: Answer
  /** Replies that end in a call: at their token limit, by a failure that the stream tells of, and by nothing. */
  readonly atItsLimit: Answer
  readonly failing: Answer
  readonly cut: Answer
  /** A reply that stalls in a text. */
  readonly stalled: Answer
  readonly full: Answer
  /** The class of a failure that a stream tells of. */
  readonly failure: string
  readonly rules: (body: Loose) => readonly string[]
  /** The rules that a request breaks with which a run continues at this moment. */
  readonly brokenAt: (messages: readonly Message[], at: number) => readonly string[]
  readonly spent: object
  /** What the second request sends back. */
  readonly demandSentBack: (body: Loose) => void
}

const results = ['{"city":"Seoul","days":3}', '{}']
const spent = { inputTokens: 120 + 12, outputTokens: 64 + 20 }

const [responses, chat] = openaiWires as readonly [(typeof openaiWires)[number], (typeof openaiWires)[number]]

function openaiWire(
  wire: (typeof openaiWires)[number],
  cut: readonly object[],
  limit: object,
  begun: readonly object[],
): Omit<Wire, 'rules' | 'brokenAt' | 'demandSentBack'> {
  const records = (events: readonly object[]) => ({ pieces: events.map((event) => wire.record(event)) })
  return {
    model: (url) => wire.make({ apiKey: 'k', baseURL: url }),
    ...{ whole: { pieces: [wire.bytes(wire.rich)] }, answer: { pieces: [wire.bytes(wire.hello)] } },
    atItsLimit: records([...cut, limit]),
    failing: records([...cut, wire.failing!('server_error', 'Oops')]),
    ...{ failure: 'server', cut: records(cut), stalled: { ...records(begun), ending: 'stall' } },
    full: {
      ...{ status: 400, headers: { 'content-type': 'application/json' } },
      pieces: [JSON.stringify({ error: { code: 'context_length_exceeded', message: 'Too long' } })],
    },
    spent: { ...spent, cacheReadTokens: 100 },
  }
}

const messagesCut = [
  start(),
  ...thinkingBlock(0, 'hm', 'sig=='),
  ...toolBlock(1, 'toolu_1', 'get_weather', '{"city": "Seoul"}'),
  open(2, { type: 'tool_use', id: 'toolu_2', name: 'get_time', input: {} }),
  json(2, '{"zone": "As'),
]
const messagesAnswers = {
  answer: {
    pieces: [sseBytes([start({ id: 'msg_2' }), ...textBlock(0, 'Hello'), done('end_turn'), stop])],
  },
  atItsLimit: { pieces: [sseBytes([...messagesCut, done('max_tokens'), stop])] },
  failing: {
    pieces: [
      sseBytes([
        ...messagesCut,
        { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      ]),
    ],
  },
  failure: 'overloaded',
  cut: { pieces: [sseBytes(messagesCut)] },
  stalled: {
    pieces: [
      sseBytes([
        ...[start(), ...thinkingBlock(0, 'hm', 'sig=='), open(1, { type: 'text', text: '' }), text(1, 'It ')],
      ]),
    ],
    ending: 'stall',
  },
  full: {
    ...{ status: 400, headers: { 'content-type': 'application/json' } },
    pieces: [JSON.stringify({ error: { type: 'invalid_request_error', message: 'prompt is too long' } })],
  },
  spent: { ...spent, cacheReadTokens: 100 },
} as const
// The AI SDK's provider takes no block with a field missing, as short hand-written ones have.
const richForAiSdk = sseBytes([
  start(),
  ...thinkingBlock(0, 'The user greets me — in Seoul it is 서울 weather 🌦️.', 'c2lnbmF0dXJl'),
  ...textBlock(1, 'Grüß dich! ', 'Let me look', ' … 👋'),
  ...toolBlock(2, 'toolu_1', 'get_weather', '', '{"city": "Se', 'oul", "days"', ': 3}'),
  ...toolBlock(3, 'toolu_2', 'get_time', ''),
  {
    ...done('tool_use'),
    usage: {
      input_tokens: 12,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 8,
      output_tokens: 64,
    },
  },
  stop,
])
const ollamaCut = [
  ...[lines.thinking('hm'), lines.text('It ')],
  lines.calls(lines.call('get_weather', { city: 'Seoul' }, 'call_1')),
]
const chatCut = [
  ...[openai.role, ...openai.callPieces(0, 'call_1', 'get_weather', '{"city":"Seoul"}')],
  ...openai.callPieces(1, 'call_2', 'get_time', '{"zone": "As'),
]
const responsesCut = openai.counted(
  ...[openai.created(), ...openai.reasoning(0, 'ZW5j')],
  openai.functionCall(1, 'call_1', 'get_weather', '{"city":"Seoul"}'),
  openai.added(2, { type: 'function_call', id: 'fc_2', call_id: 'call_2', name: 'get_time', arguments: '' }),
  openai.args(2, '{"zone": "As'),
)

/** Demands the blocks of a reply as they came, and the results after them. */
const demandBlocks =
  (types: readonly string[]) =>
  ({ messages: [, assistant, answers] }: Loose): void => {
    expect(assistant.content.map(({ type }: Loose) => type)).toEqual(types)
    expect(answers.content.map(({ tool_use_id }: Loose) => tool_use_id)).toEqual(['toolu_1', 'toolu_2'])
    const texts = answers.content.map(({ content }: Loose) => content?.[0]?.text ?? content)
    expect(texts).toEqual(results)
  }

const wires: Readonly<Record<string, Wire>> = {
  Messages: {
    ...messagesAnswers,
    model: (url) => anthropic('claude-test-1', { apiKey: 'k', baseURL: url, promptCache: 'off' }),
    whole: { pieces: [sseBytes(rich)] },
    rules: brokenRules,
    brokenAt: (messages, at) => brokenRules(messagesBody(messages, { promptCache: '5m' }, {}, at)),
    demandSentBack: demandBlocks([
      ...['thinking', 'text', 'server_tool_use', 'web_search_tool_result', 'text', 'tool_use', 'tool_use'],
    ]),
  },
  'Messages by the AI SDK': {
    ...messagesAnswers,
    model: (url) => fromAiSdk(createAnthropic({ apiKey: 'k', baseURL: `${url}/v1` })('claude-test-1')),
    whole: { pieces: [richForAiSdk] },
    rules: (body) => brokenRules(withBlocks(body)),
    brokenAt(messages) {
      const reader = {
        ...({ provider: 'anthropic', modelId: 'claude-test-1', version: 'v4', audio: false } as const),
        fetches: () => true,
      }
      const { prompt } = renderCall({ ...request, messages }, reader, {}).call
      const calls = prompt.flatMap(({ role, content }) =>
        role === 'assistant'
          ? content.filter((part) => part.type === 'tool-call' && !part.providerExecuted)
          : [],
      )
      const answers = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []))
      return answers.length === calls.length ? [] : [`${calls.length} calls, ${answers.length} answers`]
    },
    demandSentBack: demandBlocks(contentOf(richForAiSdk).map(({ type }) => type)),
  },
  Responses: {
    ...openaiWire(
      ...([
        responses,
        responsesCut,
        openai.incomplete('max_output_tokens', { sequence_number: 99 }),
      ] as const),
      openai.counted(openai.created(), openai.reasoning(0, 'ZW5j'), openai.message(1, 'It ').slice(0, -2)),
    ),
    rules: (body) => brokenResponsesRules(body),
    brokenAt: (messages) => brokenResponsesRules(responsesBody(messages)),
    demandSentBack({ input }) {
      expect(input.map(({ type, role }: Loose) => type ?? role)).toEqual([
        ...['user', 'reasoning', 'web_search_call', 'reasoning', 'message', 'function_call', 'function_call'],
        ...['function_call_output', 'function_call_output'],
      ])
      expect(input.slice(-2).map(({ call_id, output }: Loose) => [call_id, output])).toEqual([
        ...[
          ['call_1', results[0]],
          ['call_2', results[1]],
        ],
      ])
    },
  },
  'Chat Completions': {
    ...openaiWire(chat, chatCut, openai.finish('length'), [openai.role, openai.content('It ')]),
    rules: (body) => brokenChatRules(body),
    brokenAt: (messages) => brokenChatRules(chatBody(messages)),
    demandSentBack({ messages }) {
      expect(messages.map(({ role }: Loose) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool'])
      expect(messages.slice(-2).map(({ tool_call_id, content }: Loose) => [tool_call_id, content])).toEqual([
        ...[
          ['call_1', results[0]],
          ['call_2', results[1]],
        ],
      ])
    },
  },
  'Ollama’s chat': {
    model: (url) => ollama('qwen-test', { baseURL: url }),
    whole: lines.answer([lines.lineBytes(lines.rich)]),
    answer: lines.answer([lines.lineBytes([lines.text('Hello'), lines.done()])]),
    atItsLimit: lines.answer([lines.lineBytes([...ollamaCut, lines.done('length')])]),
    failing: lines.answer([lines.lineBytes([...ollamaCut, { error: 'the runner has stopped' }])]),
    failure: 'server',
    cut: lines.answer([lines.lineBytes(ollamaCut)]),
    stalled: lines.answer([lines.lineBytes(ollamaCut.slice(0, 2))], { ending: 'stall' }),
    full: { status: 400, pieces: ['{"error": "the input length exceeds the context length"}'] },
    spent,
    rules: brokenByOllama,
    brokenAt: (messages) => brokenByOllama(renderOllama({ ...request, messages }, lines.settings).body),
    demandSentBack({ messages: [, , reply, ...answers] }) {
      expect(reply.thinking).toBe('The user greets me — in Seoul it is 서울 weather 🌦️. Two calls.')
      expect(reply.content).toBe('Grüß dich! Let me look … 👋One moment.')
      expect(answers.map(({ tool_name, content }: Loose) => [tool_name, content])).toEqual([
        ...[
          ['get_weather', results[0]],
          ['get_time', results[1]],
          ['get_weather', '{"city":"Busan"}'],
        ],
      ])
      // The provider gave two calls one id.
      expect(new Set(answers.map(({ tool_call_id }: Loose) => tool_call_id)).size).toBe(3)
      expect(answers[0].tool_call_id).toBe('call_a1b2c3d4')
    },
  },
}

const pausing: readonly Answer[] = [
  {
    pieces: [
      sseBytes([
        start(),
        open(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }),
        { type: 'content_block_stop', index: 0 },
        ...[done('pause_turn'), stop],
      ]),
    ],
  },
  {
    pieces: [
      sseBytes([
        start({ id: 'msg_2' }),
        open(0, { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }),
        { type: 'content_block_stop', index: 0 },
        ...[...textBlock(1, 'It rains.'), done('end_turn'), stop],
      ]),
    ],
  },
]
const refused = { pieces: [sseBytes([start(), ...textBlock(0, 'I'), done('refusal'), stop])] }
const promptCut = lines.answer([
  lines.lineBytes([lines.text('Hi!'), lines.done('stop', { prompt_eval_count: 16_384 })]),
])

/** Answers to a run, by its title, and how it ends. */
type Stories = Readonly<Record<string, readonly [answers: readonly Answer[], reason: string]>>

const ofOneWire: Readonly<Record<string, Stories>> = {
  Messages: {
    'that pauses in a server tool, and continues': [pausing, 'answered'],
    'that is refused': [[refused], 'refused'],
  },
  'Ollama’s chat': { 'whose prompt the server cuts': [[promptCut], 'context_overflow'] },
}

const storiesOf = (name: string, wire: Wire): Stories => ({
  'that calls tools and answers': [[wire.whole, wire.answer], 'answered'],
  'whose reply is cut at its token limit, inside a call': [
    [wire.atItsLimit, wire.answer],
    'output_truncated',
  ],
  'whose reply breaks off inside a call, and is asked for again': [
    ...([[wire.failing, wire.whole, wire.answer], 'answered'] as const),
  ],
  'whose every reply breaks off': [[wire.cut], 'model_failed'],
  'that is cancelled in the middle of a word': [[wire.stalled], 'cancelled'],
  'that meets a full context': [[wire.full], 'context_overflow'],
  ...ofOneWire[name],
})

describe.each(Object.entries(wires))('a run over %s', (name, wire) => {
  const stories = storiesOf(name, wire)
  const play = (title: string): Promise<RecordedRun> =>
    recordedRun(wire.model, stories[title]![0], (event, run) => {
      const isStalled = title.startsWith('that is cancelled')
      if (isStalled && event.type === 'assistant_text_delta') void run.cancel('enough')
    })

  it.each(Object.keys(stories))(
    '%s ends as it should, breaks no law, and sends nothing that is refused',
    async (title) => {
      const { server, events, result } = await play(title)
      expect(result).toMatchObject({ status: 'done', reason: stories[title]![1] })
      expect(checkLaws(events)).toEqual([])
      expect(server.arrivals.flatMap(({ body }) => wire.rules(body))).toEqual([])
      let state: RunState | undefined
      // It could continue from any of its events.
      const broken = events.flatMap((event) => {
        state = evolve(state, event)
        return wire
          .brokenAt(toTranscript(state), event.at)
          .map((rule) => `${event.seq} ${event.type}: ${rule}`)
      })
      expect(broken).toEqual([])
    },
  )

  it('sends the reply back as it came, with the results after it, and answers', async () => {
    const { server, result } = await play('that calls tools and answers')
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Hello' })
    expect(result.usage).toMatchObject(wire.spent)
    wire.demandSentBack(server.arrivals[1]!.body)
  })

  it('runs no call of a reply that was cut', async () => {
    const { events } = await play('whose reply is cut at its token limit, inside a call')
    const types = events.map(({ type }) => type)
    expect(types).toContain('tool_request_ready')
    expect(types).not.toContain('tool_started')
  })

  it('tries a broken reply again, and never splices the two', async () => {
    const { events, result, server } = await play(
      'whose reply breaks off inside a call, and is asked for again',
    )
    expect(events.filter(({ type }) => type === 'model_stream_failed')).toMatchObject([
      { failure: { class: wire.failure, retryable: true } },
    ])
    expect(server.arrivals[1]?.body).toEqual(server.arrivals[0]?.body)
    expect(result.text).toBe('Hello')
  })
})

it('a paused reply of Anthropic goes back unchanged, as the last message', async () => {
  const { server } = await recordedRun(wires['Messages']!.model, pausing)
  expect(server.arrivals[1]!.body['messages'].at(-1)).toEqual({
    role: 'assistant',
    content: [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }],
  })
})
