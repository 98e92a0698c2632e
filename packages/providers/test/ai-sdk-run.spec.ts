import { createAnthropic } from '@ai-sdk/anthropic'
import { evolve, toTranscript } from '@tallystick/core/machine'
import type { RunState } from '@tallystick/core'
import { checkLaws } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { renderCall } from './kit/ai-sdk-call.ts'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { withBlocks } from './kit/ai-sdk-wires.ts'
import { contentOf } from './kit/anthropic-content.ts'
import { sseBytes } from './kit/bytes.ts'
import { brokenRules } from './kit/history-rules.ts'
import type { Answer } from './kit/loopback.ts'
import { done, json, open, start, stop, text, textBlock, thinkingBlock, toolBlock } from './kit/streams.ts'
import { request } from './kit/collect.ts'
import { recordedRun, type RecordedRun, type Watch } from './kit/recorded-run.ts'

/** A run of the real runtime against these answers. */
const run = (answers: readonly Answer[], watch?: Watch): Promise<RecordedRun> =>
  recordedRun(
    (url) => fromAiSdk(createAnthropic({ apiKey: 'k', baseURL: `${url}/v1` })('claude-test-1')),
    answers,
    watch,
  )

const answer = {
  pieces: [sseBytes([start({ id: 'msg_2' }), ...textBlock(0, 'It rains.'), done('end_turn'), stop])],
}
// The AI SDK's provider takes no block with a field missing, as short hand-written ones have.
const toolCallEvents = [
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
]
const cutInACall = [
  start(),
  ...thinkingBlock(0, 'hm', 'sig=='),
  ...toolBlock(1, 'toolu_1', 'get_weather', '{"city": "Seoul"}'),
  open(2, { type: 'tool_use', id: 'toolu_2', name: 'get_time', input: {} }),
  json(2, '{"zone": "As'),
]
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
const begun = [
  start(),
  ...thinkingBlock(0, 'hm', 'sig=='),
  open(1, { type: 'text', text: '' }),
  text(1, 'It '),
]

const stories: { readonly [title: string]: () => Promise<RecordedRun> } = {
  'that calls tools and answers': () => run([{ pieces: [sseBytes(toolCallEvents)] }, answer]),
  'whose reply is cut at its token limit, inside a call': () =>
    run([{ pieces: [sseBytes([...cutInACall, done('max_tokens'), stop])] }, answer]),
  'whose reply breaks off inside a call, and is asked for again': () =>
    run([
      { pieces: [sseBytes([...cutInACall, overloaded])] },
      { pieces: [sseBytes(toolCallEvents)] },
      answer,
    ]),
  'whose every reply breaks off': () => run([{ pieces: [sseBytes(cutInACall)] }]),
  'that is cancelled in the middle of a word': () =>
    run(
      [{ pieces: [sseBytes(begun)], ending: 'stall' }],
      (event, started) => void (event.type === 'assistant_text_delta' && started.cancel('enough')),
    ),
}

describe.each(Object.entries(stories))('a run %s', (_, tell) => {
  it('breaks no law, and sends nothing that the vendor refuses', async () => {
    const { server, events } = await tell()
    expect(checkLaws(events)).toEqual([])
    expect(server.arrivals.map(({ body }) => brokenRules(withBlocks(body)))).toEqual(
      server.arrivals.map(() => []),
    )
  })

  it('could continue from any of its events', async () => {
    const { events } = await tell()
    const reader = {
      provider: 'anthropic',
      modelId: 'claude-test-1',
      version: 'v4',
      audio: false,
      fetches: () => true,
    } as const
    let state: RunState | undefined
    for (const event of events) {
      state = evolve(state, event)
      const { prompt } = renderCall({ ...request, messages: toTranscript(state) }, reader, {}).call
      const calls = prompt.flatMap(({ role, content }) =>
        role === 'assistant'
          ? content.filter((part) => part.type === 'tool-call' && !part.providerExecuted)
          : [],
      )
      const answers = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []))
      expect(answers).toHaveLength(calls.length)
    }
  })
})

describe('a run over the AI SDK', () => {
  it('sends the reply back as it came, with the results after it, and answers', async () => {
    const { server, result } = await stories['that calls tools and answers']!()
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'It rains.' })
    expect(result.usage).toMatchObject({ inputTokens: 120 + 12, outputTokens: 64 + 20, cacheReadTokens: 100 })
    const [, assistant, answers] = server.arrivals[1]!.body['messages']
    expect(assistant.content.map((block: { type: string }) => block.type)).toEqual(
      contentOf(sseBytes(toolCallEvents)).map(({ type }) => type),
    )
    expect(
      answers.content.map((block: { tool_use_id: string; content: string }) => [
        block.tool_use_id,
        block.content,
      ]),
    ).toEqual([
      ['toolu_1', '{"city":"Seoul","days":3}'],
      ['toolu_2', '{}'],
    ])
  })

  it('tries a broken reply again, and never splices the two', async () => {
    const { events, result, server } =
      await stories['whose reply breaks off inside a call, and is asked for again']!()
    expect(events.filter(({ type }) => type === 'model_stream_failed')).toMatchObject([
      { failure: { class: 'overloaded', retryable: true } },
    ])
    expect(events.filter(({ type }) => type === 'tool_started')).toHaveLength(2)
    expect(server.arrivals[1]?.body).toEqual(server.arrivals[0]?.body)
    expect(result.text).toBe('It rains.')
  })

  it.each([
    ['whose every reply breaks off', 'model_failed'],
    ['whose reply is cut at its token limit, inside a call', 'output_truncated'],
    ['that is cancelled in the middle of a word', 'cancelled'],
  ])('%s ends as %s', async (title, reason) => {
    expect((await stories[title]!()).result).toMatchObject({ status: 'done', reason })
  })
})
