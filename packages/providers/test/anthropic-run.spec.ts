import { evolve, toTranscript } from '@tallystick/core/machine'
import type { RunState } from '@tallystick/core'
import { checkLaws } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { renderRequest } from '../src/anthropic/request.ts'
import { sseBytes } from './kit/bytes.ts'
import { request } from './kit/collect.ts'
import { brokenRules } from './kit/history-rules.ts'
import type { Answer } from './kit/loopback.ts'
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
import { settings } from './kit/history.ts'
import { recordedRun, type RecordedRun, type Watch } from './kit/recorded-run.ts'

/** A run of the real runtime against these answers. */
const run = (answers: readonly Answer[], watch?: Watch): Promise<RecordedRun> =>
  recordedRun(
    (url) => anthropic('claude-test-1', { apiKey: 'k', baseURL: url, promptCache: 'off' }),
    answers,
    watch,
  )

const answer = {
  pieces: [sseBytes([start({ id: 'msg_2' }), ...textBlock(0, 'It rains.'), done('end_turn'), stop])],
}
const cutInACall = [
  start(),
  ...thinkingBlock(0, 'hm', 'sig=='),
  ...toolBlock(1, 'toolu_1', 'get_weather', '{"city": "Seoul"}'),
  open(2, { type: 'tool_use', id: 'toolu_2', name: 'get_time', input: {} }),
  json(2, '{"zone": "As'),
]
const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }

const stories: { readonly [title: string]: () => Promise<RecordedRun> } = {
  'that calls tools and answers': () => run([{ pieces: [sseBytes(rich)] }, answer]),
  'whose reply is cut at its token limit, inside a call': () =>
    run([{ pieces: [sseBytes([...cutInACall, done('max_tokens'), stop])] }, answer]),
  'whose reply breaks off inside a call, and is asked for again': () =>
    run([{ pieces: [sseBytes([...cutInACall, overloaded])] }, { pieces: [sseBytes(rich)] }, answer]),
  'whose every reply breaks off': () => run([{ pieces: [sseBytes(cutInACall)] }]),
  'that is cancelled in the middle of a word': () =>
    run(
      [
        {
          pieces: [
            sseBytes([
              start(),
              ...thinkingBlock(0, 'hm', 'sig=='),
              open(1, { type: 'text', text: '' }),
              text(1, 'It '),
            ]),
          ],
          ending: 'stall',
        },
      ],
      (event, started) => void (event.type === 'assistant_text_delta' && started.cancel('enough')),
    ),
  'that pauses in a server tool, and continues': () =>
    run([
      {
        pieces: [
          sseBytes([
            start(),
            open(0, { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }),
            { type: 'content_block_stop', index: 0 },
            done('pause_turn'),
            stop,
          ]),
        ],
      },
      {
        pieces: [
          sseBytes([
            start({ id: 'msg_2' }),
            open(0, { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }),
            { type: 'content_block_stop', index: 0 },
            ...textBlock(1, 'It rains.'),
            done('end_turn'),
            stop,
          ]),
        ],
      },
    ]),
  'that is refused': () =>
    run([{ pieces: [sseBytes([start(), ...textBlock(0, 'I'), done('refusal'), stop])] }]),
  'that meets a full context': () =>
    run([
      {
        status: 400,
        pieces: [JSON.stringify({ error: { type: 'invalid_request_error', message: 'prompt is too long' } })],
      },
    ]),
}

describe.each(Object.entries(stories))('a run %s', (_, tell) => {
  it('breaks no law, and sends nothing that the vendor refuses', async () => {
    const { server, events } = await tell()
    expect(checkLaws(events)).toEqual([])
    expect(server.arrivals.map(({ body }) => brokenRules(body))).toEqual(server.arrivals.map(() => []))
  })

  it('could continue from any of its events with a request that the vendor takes', async () => {
    const { events } = await tell()
    let state: RunState | undefined
    const refused = events.flatMap((event) => {
      state = evolve(state, event)
      const asked = { ...request, messages: toTranscript(state) }
      const { body } = renderRequest(asked, { ...settings, promptCache: '5m' }, { now: event.at })
      return brokenRules(body).map((rule) => `${event.seq} ${event.type}: ${rule}`)
    })
    expect(refused).toEqual([])
  })
})

describe('a run over this wire', () => {
  it('sends the reply back as it came, with the results after it, and answers', async () => {
    const { server, result } = await stories['that calls tools and answers']!()
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'It rains.' })
    expect(result.usage).toMatchObject({ inputTokens: 120 + 12, outputTokens: 64 + 20, cacheReadTokens: 100 })
    const [, assistant, answers] = server.arrivals[1]!.body['messages']
    expect(assistant.content.map((block: { type: string }) => block.type)).toEqual([
      'thinking',
      'text',
      'server_tool_use',
      'web_search_tool_result',
      'text',
      'tool_use',
      'tool_use',
    ])
    expect(answers.content).toEqual([
      {
        type: 'tool_result',
        tool_use_id: 'toolu_1',
        content: [{ type: 'text', text: '{"city":"Seoul","days":3}' }],
      },
      { type: 'tool_result', tool_use_id: 'toolu_2', content: [{ type: 'text', text: '{}' }] },
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
      { failure: { class: 'overloaded', retryable: true } },
    ])
    expect(server.arrivals[1]?.body).toEqual(server.arrivals[0]?.body)
    expect(result.text).toBe('It rains.')
  })

  it.each([
    ['whose every reply breaks off', 'model_failed'],
    ['that is cancelled in the middle of a word', 'cancelled'],
    ['that is refused', 'refused'],
    ['that meets a full context', 'context_overflow'],
    ['that pauses in a server tool, and continues', 'answered'],
  ])('%s ends as %s', async (title, reason) => {
    expect((await stories[title]!()).result).toMatchObject({ status: 'done', reason })
  })

  it('sends a paused reply back unchanged, as the last message', async () => {
    const { server } = await stories['that pauses in a server tool, and continues']!()
    expect(server.arrivals[1]!.body['messages'].at(-1)).toEqual({
      role: 'assistant',
      content: [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }],
    })
  })
})
