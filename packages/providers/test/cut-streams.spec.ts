import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { HttpWire } from '@tallystick/testkit/contract'
import { describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { openaiChat } from '../src/openai.ts'
import { aiSdkAnthropicWire, aiSdkCompatibleWire, aiSdkOpenAiChatWire } from './kit/ai-sdk-wires.ts'
import { splitAt, chatBytes, dataRecord } from './kit/bytes.ts'
import { callsOf, collect, finished, request, textShown } from './kit/collect.ts'
import { anthropicWire, ollamaWire } from './kit/contract-wires.ts'
import { serve } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { chatWire, responsesWire } from './kit/openai-contract-wires.ts'
import { foldResponse } from './kit/openai-fold.ts'
import {
  callPieces,
  content,
  role,
  added,
  completed,
  created,
  delta,
  itemDone,
  said,
} from './kit/openai-streams.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'

forbidConsole()
forbidUnhandledRejections()

const wires: Readonly<Record<string, HttpWire>> = {
  ...{ Anthropic: anthropicWire, Responses: responsesWire, 'Chat Completions': chatWire, Ollama: ollamaWire },
  'Anthropic by the AI SDK': aiSdkAnthropicWire,
  'OpenAI’s chat by the AI SDK': aiSdkOpenAiChatWire,
  'a compatible chat by the AI SDK': aiSdkCompatibleWire,
}
const usage = { inputTokens: 12, outputTokens: 34 }
const reply = { text: ['Grüß dich! ', '서울'], stop: 'end', usage } as const

describe.each(Object.entries(wires))('a stream of %s that is cut', (_, wire) => {
  const { events, proof = events.length } = wire.reply(reply)
  const bytes = new TextEncoder().encode(events.join(''))
  // The last event that proves the reply may lack its line feeds.
  const proved = new TextEncoder().encode(events.slice(0, proof).join('').trimEnd()).length
  const answerOf = (end: number, ending: 'end' | 'break') => ({
    ...{ pieces: splitAt(bytes.subarray(0, end), [end - 3]), ending },
    headers: { 'content-type': wire.contentType },
  })
  const count = effort({ quick: 6, thorough: 24 })
  const cuts = Array.from({ length: count }, (_one, place) =>
    Math.floor((proved * (place + 1)) / (count + 1)),
  )

  it('at any byte, and comes to a proper end, is truncated', async () => {
    for (const cut of cuts) {
      const server = await serve(answerOf(cut, 'end'))
      const { failure, signals } = await collect(wire.model(server.url))
      expect([cut, failure?.class, failure?.retryable]).toEqual([cut, 'truncated', true])
      expect(finished(signals)).toBeUndefined()
    }
  })

  it('before there is a body at all, is truncated', async () => {
    const server = await serve({ status: 204 })
    const { failure } = await collect(wire.model(server.url))
    expect([failure?.class, failure?.retryable]).toEqual(['truncated', true])
  })

  it('at any byte, by a reset, is a matter of the network', async () => {
    for (const cut of cuts) {
      const server = await serve(answerOf(cut, 'break'))
      const { failure, signals } = await collect(wire.model(server.url))
      expect([cut, failure?.class, failure?.retryable]).toEqual([cut, 'network', true])
      expect(finished(signals)).toBeUndefined()
    }
  })
})

describe('a server that is known to give no finish reason', () => {
  const quirks = { finishReasonOptional: true }
  const model = (baseURL: string) => openaiChat('kimi-test', { apiKey: 'k', baseURL, quirks })
  const call = (input: string) => [role, ...callPieces(0, 'call_1', 'pay', ...(input ? [input] : []))]
  const records = (chunks: readonly object[]) => [chunks.map(dataRecord).join('')]

  it.each([
    ['words', [role, content('It is')]],
    ['a call without input yet', call('')],
    ['a call whose input reads as a whole', call('{}')],
  ])('has not ended where the connection is reset after %s', async (_, chunks) => {
    const server = await serve({ pieces: records(chunks), ending: 'break' })
    const { failure, signals } = await collect(model(server.url))
    expect(failure).toMatchObject({ class: 'network', retryable: true })
    expect(callsOf(signals)).toEqual([])
  })

  it('has not ended where it falls silent', async () => {
    const server = await serve({ pieces: records(call('{}')), ending: 'stall' })
    const clock = new ManualClock()
    const begun = Promise.withResolvers<void>()
    const reported: { failure?: unknown; types: string[] } = { types: [] }
    model(server.url)
      .stream(request, { clock })
      .subscribe({
        next: ({ type }) => void (reported.types.push(type), type === 'model_tool_input' && begun.resolve()),
        error: (failure: unknown) => (reported.failure = failure),
      })
    await begun.promise
    clock.advance(600_000)
    expect(reported.failure).toMatchObject({ class: 'timeout', retryable: true })
    expect(reported.types).not.toContain('model_tool_request')
  })

  it.each([
    ['without any of its input', ''],
    ['in the middle of its input', '{"amount": 1'],
  ])('has not ended where a gateway ends a stream properly that was cut in a call, %s', async (_, input) => {
    const server = await serve({ pieces: records(call(input)) })
    const { failure, signals } = await collect(model(server.url))
    expect(failure).toMatchObject({ class: 'truncated', retryable: true })
    expect(callsOf(signals)).toEqual([])
  })

  it.each([
    ['words', records([role, content('It is')]), 0],
    ['a call with all of its input', records(call('{"amount":1}')), 1],
    ['a call without input, and the last word of the wire', [chatBytes(call(''))], 1],
  ])('has ended where the stream comes to its proper end after %s', async (_, pieces, calls) => {
    const server = await serve({ pieces })
    const { failure, signals } = await collect(model(server.url))
    expect(failure).toBeUndefined()
    expect(callsOf(signals)).toHaveLength(calls)
    expect(finished(signals)).toMatchObject({ stopReason: calls === 1 ? 'tool_use' : 'end' })
  })

  it('finds the last word of the wire however its bytes arrive, and not in what the model says', async () => {
    const bytes = chatBytes(call(''))
    const parted = await serve({ pieces: splitAt(bytes, [bytes.length - 5, bytes.length - 9]) })
    expect(callsOf((await collect(model(parted.url))).signals)).toHaveLength(1)
    const saying = await serve({ pieces: records([role, content('\ndata: [DONE]\n'), ...call('').slice(1)]) })
    expect((await collect(model(saying.url))).failure).toMatchObject({ class: 'truncated' })
  })

  it('has not ended under the AI SDK either, after a reset or after half a call', async () => {
    const lenient = (baseURL: string) =>
      fromAiSdk(createOpenAICompatible({ name: 'local', apiKey: 'k', baseURL })('kimi'), {
        endOfStreamIsEnd: true,
      })
    const reset = await serve({ pieces: records(call('{}')), ending: 'break' })
    expect((await collect(lenient(reset.url))).failure).toMatchObject({ class: 'network' })
    const half = await serve({ pieces: records(call('')) })
    expect((await collect(lenient(half.url))).failure).toMatchObject({ class: 'truncated' })
    const whole = await serve({ pieces: records(call('{"a":1}')) })
    expect(callsOf((await collect(lenient(whole.url))).signals)).toHaveLength(1)
  })
})

describe('text of a response', () => {
  it('that the item contradicts in the end is taken back: the item wins', () => {
    const item = (text: string) => ({
      type: 'message',
      id: 'msg_0',
      content: [{ type: 'output_text', text }],
    })
    const shownBy = (text: string) =>
      foldResponse([created(), added(0, item('')), said(0, ' Hello'), itemDone(0, item(text)), completed()])
        .signals
    const signals = shownBy('Other')
    expect(signals).toContainEqual({ type: 'model_text', part: 0, text: 'Other', replaces: true })
    expect(finished(signals)?.parts).toMatchObject([{ type: 'text', text: 'Other' }])
    // An item that says nothing contradicts nothing.
    expect(finished(shownBy(''))?.parts).toMatchObject([{ type: 'text', text: ' Hello' }])
    expect(textShown(shownBy(' Hello there'))).toBe(' Hello there')
  })

  it('of reasoning that the item contradicts is taken back too', () => {
    const summary = [{ type: 'summary_text', text: 'I look at the clouds.' }]
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'reasoning', id: 'rs_0', summary: [] })],
      delta('reasoning_summary_text', 0, 'I look at the sea.', { summary_index: 0 }),
      ...[itemDone(0, { type: 'reasoning', id: 'rs_0', summary, encrypted_content: 'ZW5j' }), completed()],
    ])
    expect(finished(signals)?.parts[0]).toMatchObject({ type: 'reasoning', text: 'I look at the clouds.' })
  })
})
