import { evolve, toTranscript } from '@tallystick/core/machine'
import type { RunState } from '@tallystick/core'
import { checkLaws } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { ollama } from '../src/ollama.ts'
import { renderRequest } from '../src/ollama/request.ts'
import { request } from './kit/collect.ts'
import type { Answer } from './kit/loopback.ts'
import { brokenRules } from './kit/ollama-history-rules.ts'
import { answer, call, calls, done, lineBytes, rich, text, thinking } from './kit/ollama-lines.ts'
import { recordedRun, type RecordedRun, type Watch } from './kit/recorded-run.ts'

/** A run of the real runtime against these answers. */
const run = (answers: readonly Answer[], watch?: Watch): Promise<RecordedRun> =>
  recordedRun((url) => ollama('qwen-test', { baseURL: url }), answers, watch)

const rains = answer([lineBytes([text('It rains.'), done()])])
const cut = [thinking('hm'), text('It '), calls(call('get_weather', { city: 'Seoul' }, 'call_1'))]

const stories: { readonly [title: string]: () => Promise<RecordedRun> } = {
  'that calls tools and answers': () => run([answer([lineBytes(rich)]), rains]),
  'whose reply is cut at its length, after a call': () =>
    run([answer([lineBytes([...cut, done('length')])]), rains]),
  'whose reply breaks off after a call, and is asked for again': () =>
    run([
      answer([lineBytes([...cut, { error: 'the runner has stopped' }])]),
      answer([lineBytes(rich)]),
      rains,
    ]),
  'whose every reply breaks off': () => run([answer([lineBytes(cut)])]),
  'that is cancelled in the middle of a word': () =>
    run(
      [answer([lineBytes([thinking('hm'), text('It ')])], { ending: 'stall' })],
      (event, started) => void (event.type === 'assistant_text_delta' && started.cancel('enough')),
    ),
  'whose prompt the server refuses as too long': () =>
    run([{ status: 400, pieces: ['{"error": "the input length exceeds the context length"}'] }]),
  'whose prompt the server cuts': () =>
    run([answer([lineBytes([text('Hi!'), done('stop', { prompt_eval_count: 16_384 })])])]),
}

describe.each(Object.entries(stories))('a run %s', (_, tell) => {
  it('breaks no law, and sends nothing that the server refuses', async () => {
    const { server, events } = await tell()
    expect(checkLaws(events)).toEqual([])
    expect(server.arrivals.map(({ body }) => brokenRules(body))).toEqual(server.arrivals.map(() => []))
  })

  it('could continue from any of its events with a request that the server takes', async () => {
    const { events } = await tell()
    const settings = { modelId: 'qwen-test', contextTokens: 4096, warn: () => {} }
    let state: RunState | undefined
    const refused = events.flatMap((event) => {
      state = evolve(state, event)
      const { body } = renderRequest({ ...request, messages: toTranscript(state) }, settings)
      return brokenRules(body).map((rule) => `${event.seq} ${event.type}: ${rule}`)
    })
    expect(refused).toEqual([])
  })
})

describe('a run over this wire', () => {
  it('sends the reply back with its thinking, the results after it, and answers', async () => {
    const { server, result } = await stories['that calls tools and answers']!()
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'It rains.' })
    expect(result.usage).toEqual({ inputTokens: 120 + 12, outputTokens: 64 + 20 })
    const [, , reply, ...answers] = server.arrivals[1]!.body['messages']
    expect(reply.thinking).toBe('The user greets me — in Seoul it is 서울 weather 🌦️. Two calls.')
    expect(reply.content).toBe('Grüß dich! Let me look … 👋One moment.')
    expect(
      answers.map((one: { tool_name: string; content: string }) => [one.tool_name, one.content]),
    ).toEqual([
      ['get_weather', '{"city":"Seoul","days":3}'],
      ['get_time', '{}'],
      ['get_weather', '{"city":"Busan"}'],
    ])
    // The provider gave two calls one id.
    expect(new Set(answers.map((one: { tool_call_id: string }) => one.tool_call_id)).size).toBe(3)
    expect(answers[0].tool_call_id).toBe('call_a1b2c3d4')
  })

  it('runs no call of a reply that was cut', async () => {
    const { events } = await stories['whose reply is cut at its length, after a call']!()
    const types = events.map(({ type }) => type)
    expect(types).toContain('tool_request_ready')
    expect(types).not.toContain('tool_started')
  })

  it('tries a broken reply again, and never splices the two', async () => {
    const { events, result, server } =
      await stories['whose reply breaks off after a call, and is asked for again']!()
    expect(events.filter(({ type }) => type === 'model_stream_failed')).toMatchObject([
      { failure: { class: 'server', retryable: true } },
    ])
    expect(server.arrivals[1]?.body).toEqual(server.arrivals[0]?.body)
    expect(result.text).toBe('It rains.')
  })

  it.each([
    ['whose every reply breaks off', 'model_failed'],
    ['whose reply is cut at its length, after a call', 'output_truncated'],
    ['that is cancelled in the middle of a word', 'cancelled'],
    ['whose prompt the server refuses as too long', 'context_overflow'],
    ['whose prompt the server cuts', 'context_overflow'],
  ])('%s ends as %s', async (title, reason) => {
    expect((await stories[title]!()).result).toMatchObject({ status: 'done', reason })
  })
})
