import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import {
  type ModelRequest,
  type RuntimeEvent,
  createRuntime,
  defineAgent,
  memoryLedger,
} from '@tallystick/core'
import { auditAll, toTranscript } from '@tallystick/core/machine'
import { testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicThinking } from '../src/anthropic.ts'
import { hello, sent, tool } from './kit/anthropic-sent.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, request } from './kit/collect.ts'
import { brokenRules } from './kit/history-rules.ts'
import { type Answer, type Arrival, serve } from './kit/loopback.ts'
import { recordedRun, type RecordedRun } from './kit/recorded-run.ts'
import { done, start, stop, textBlock, thinkingBlock, toolBlock } from './kit/streams.ts'

const dropping = { prefix_mismatch_behavior: 'drop_block' }
const beta = 'thinking-binding-controls-2026-08-01'

/** The body that a model of this id is sent, and the betas with it. */
async function bodyOf(modelId: string, thinking?: AnthropicThinking, asked: Partial<ModelRequest> = {}) {
  const server = await serve({ pieces: [hello] })
  const model = anthropic(modelId, { apiKey: 'k', baseURL: server.url, ...(thinking && { thinking }) })
  const { signals } = await collect(model, { ...request, ...asked })
  const { body, headers } = server.arrivals[0]!
  const started = signals.find(({ type }) => type === 'model_started')
  return { body, betas: headers['anthropic-beta'], started }
}

describe('a model that binds its thinking to what stands before it', () => {
  it.each([
    'claude-opus-5-5',
    'claude-sonnet-5-5-20260928',
    'global.anthropic.claude-haiku-5-5-v1:0',
    'claude-fable-5-1@20260801',
    'claude-mythos-5-2',
  ])('given %s, when it is called, then the service drops what no longer fits', async (modelId) => {
    const { body, betas } = await bodyOf(modelId)
    expect(body['thinking']).toEqual({ type: 'adaptive', block_binding: dropping })
    expect(betas).toBe(beta)
  })

  it.each(['claude-opus-5', 'claude-opus-5-20260901', 'claude-fable-5', 'claude-opus-4-8', 'claude-test-1'])(
    'given %s, which is none, when it is called, then nothing is said of it',
    async (modelId) => {
      const { body, betas } = await bodyOf(modelId)
      expect(body['thinking']).toBeUndefined()
      expect(betas).toBeUndefined()
    },
  )

  it.each<[AnthropicThinking, object, string | undefined]>([
    [
      { type: 'adaptive', display: 'updates' },
      { type: 'adaptive', display: 'updates', block_binding: dropping },
      beta,
    ],
    [
      { type: 'adaptive', onPrefixMismatch: 'error' },
      { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'error' } },
      beta,
    ],
    [{ type: 'adaptive', onPrefixMismatch: 'unset' }, { type: 'adaptive' }, undefined],
    [{ type: 'between_tools' }, { type: 'between_tools' }, undefined],
  ])('given the option %o, when it is called, then it wins', async (thinking, wire, betas) => {
    const sentNow = await bodyOf('claude-opus-5-5', thinking)
    expect(sentNow.body['thinking']).toEqual(wire)
    expect(sentNow.betas).toBe(betas)
  })

  it('given a client for Amazon Bedrock, when it is called, then Amazon gets the same', async () => {
    const server = await serve({ status: 500 })
    const client = new AnthropicBedrock({
      ...{ awsAccessKey: 'AKIA', awsSecretKey: 'secret', awsRegion: 'eu-central-1', baseURL: server.url },
      maxRetries: 0,
    })
    await collect(anthropic('global.anthropic.claude-opus-5-5', { client }), request)
    expect(server.arrivals[0]!.body).toMatchObject({
      thinking: { block_binding: dropping },
      anthropic_beta: [beta],
    })
  })

  it('given thinking that the service dropped, when it answers, then the reply says which', async () => {
    const dropped = {
      type: 'thinking_dropped',
      path: 'messages.1.content.0',
      reason: 'prefix_binding_mismatch',
    }
    const answer = [
      start({ input_transformations: [dropped] }),
      ...textBlock(0, 'Fine.'),
      done('end_turn'),
      stop,
    ]
    const server = await serve({ pieces: [sseBytes(answer)] })
    const { signals } = await collect(anthropic('claude-opus-5-5', { apiKey: 'k', baseURL: server.url }))
    expect(finished(signals)?.parts).toContainEqual(
      expect.objectContaining({
        type: 'provider',
        kind: 'input_transformations',
        opaque: expect.objectContaining({ data: { block: {}, note: { count: 1, first: [dropped] } } }),
      }),
    )
  })
})

const bound: Answer = {
  status: 400,
  headers: { 'content-type': 'application/json' },
  pieces: [
    JSON.stringify({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound elsewhere.',
      },
    }),
  ],
}
const calling = (signature: string): Answer => ({
  pieces: [
    sseBytes([
      start({ id: `msg_${signature}` }),
      ...thinkingBlock(0, 'hm', signature),
      ...toolBlock(1, `toolu_${signature}`, 'get_weather', '{}'),
      done('tool_use'),
      stop,
    ]),
  ],
})
const signaturesIn = ({ body }: Arrival): readonly string[] =>
  (body['messages'] as readonly { content: readonly { signature?: string }[] }[])
    .flatMap(({ content }) => content.map(({ signature }) => signature))
    .filter((signature) => signature !== undefined)

describe('earlier thinking that the service refuses', () => {
  const refusedOnce = (): Promise<RecordedRun> =>
    recordedRun(
      (url) => anthropic('claude-next-9', { apiKey: 'k', baseURL: url }),
      [calling('first'), bound, calling('second'), { pieces: [hello] }],
    )
  const ofType = <T extends RuntimeEvent['type']>(events: readonly RuntimeEvent[], type: T) =>
    events.filter((event): event is Extract<RuntimeEvent, { type: T }> => event.type === type)

  it('given a refusal, when the turn goes on, then it is asked again at once without any', async () => {
    const { server, result, events } = await refusedOnce()
    expect(result.reason).toBe('answered')
    expect(server.arrivals.map(signaturesIn)).toEqual([[], ['first'], [], ['second']])
    expect(ofType(events, 'model_call_started').map(({ turn, attempt }) => [turn, attempt])).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ])
  })

  it('given such a turn, when its record is read, then it says what was left out', async () => {
    const { events } = await refusedOnce()
    expect(ofType(events, 'assistant_started').map(({ warnings }) => warnings)).toEqual([
      undefined,
      [expect.stringContaining('did not take earlier thinking back')],
      [expect.stringContaining('stayed out of this one')],
    ])
    const state = auditAll(events)!
    const kinds = toTranscript(state).flatMap((message) =>
      message.role === 'assistant'
        ? [message.parts.flatMap((part) => (part.type === 'provider' ? [part.kind] : []))]
        : [],
    )
    expect(kinds).toEqual([[], ['thinking_left_out'], []])
  })

  it('given that the second request fails, too, when its record is read, then the failure says what was left out', async () => {
    const { events } = await recordedRun(
      (url) => anthropic('claude-next-9', { apiKey: 'k', baseURL: url }),
      [calling('first'), bound, { status: 529 }],
    )
    const [failed] = ofType(events, 'model_stream_failed')
    expect(failed?.failure.message).toContain('did not take earlier thinking back')
  })

  it('given thinking that the service dropped, when the reply breaks off, then its beginning is on record with that', async () => {
    const dropped = { type: 'thinking_dropped', path: 'messages.1.content.0' }
    const broken = sseBytes([start({ input_transformations: [dropped, dropped] })])
    const { events } = await recordedRun(
      (url) => anthropic('claude-opus-5-5', { apiKey: 'k', baseURL: url }),
      [{ pieces: [broken] }, { pieces: [hello] }],
    )
    expect(ofType(events, 'assistant_started')[0]?.warnings).toEqual([
      'Anthropic left 2 blocks of earlier thinking out of what the model read.',
    ])
  })

  it('given a second refusal, when the turn goes on, then the call fails with the words of the service', async () => {
    const { server, result } = await recordedRun(
      (url) => anthropic('claude-next-9', { apiKey: 'k', baseURL: url }),
      [calling('first'), bound],
    )
    expect(result).toMatchObject({
      reason: 'model_failed',
      detail: expect.stringContaining('bound elsewhere'),
    })
    expect(server.arrivals).toHaveLength(3)
  })
})

describe('a call that is demanded of a model that refuses to be forced', () => {
  const asked: Partial<ModelRequest> = {
    tools: [tool('look', { type: 'object' })],
    toolChoice: { type: 'tool', name: 'look' },
  }

  it('given a model that always thinks, when a call is demanded, then the request asks in words', async () => {
    const { body, started } = await bodyOf('claude-opus-5-5', undefined, asked)
    expect(body['tool_choice']).toEqual({ type: 'auto' })
    expect(JSON.stringify((body['messages'] as readonly object[]).at(-1))).toContain(
      'a call of the tool look',
    )
    expect(started).toMatchObject({ warnings: [expect.stringContaining('refuses to be forced')] })
  })

  it('given any other, when a call is demanded, then it is forced', async () => {
    const { body } = await sent({}, asked)
    expect(body['tool_choice']).toEqual({ type: 'tool', name: 'look' })
  })

  it('given a model whose refusal tells, when a call is demanded, then it is asked again in words', async () => {
    const message = 'tool_choice: forcing a tool is not supported for this model.'
    const refusal: Answer = {
      status: 400,
      headers: { 'content-type': 'application/json' },
      pieces: [JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } })],
    }
    const server = await serve(refusal, { pieces: [hello] })
    const model = anthropic('claude-next-9', { apiKey: 'k', baseURL: server.url })
    const { failure } = await collect(model, { ...request, ...asked })
    expect(failure).toBeUndefined()
    expect(server.arrivals.map(({ body }) => body['tool_choice'])).toEqual([
      { type: 'tool', name: 'look' },
      { type: 'auto' },
    ])
  })
})

describe('calls that are none', () => {
  it('given a stop for tools without a call, when the reply ends, then it fails and may be tried again', async () => {
    const server = await serve({ pieces: [sseBytes([start(), done('tool_use'), stop])] })
    const { failure } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
    expect(failure).toMatchObject({ class: 'protocol', retryable: true })
  })

  it('given an input that is not JSON, when the model is asked again, then it reads what it wrote', async () => {
    const written = '{"city": Seoul}'
    const { server } = await recordedRun(
      (url) => anthropic('claude-test-1', { apiKey: 'k', baseURL: url }),
      [
        {
          pieces: [
            sseBytes([start(), ...toolBlock(0, 'toolu_1', 'get_weather', written), done('tool_use'), stop]),
          ],
        },
        { pieces: [hello] },
      ],
    )
    expect(server.arrivals[1]!.body['messages']).toContainEqual({
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { INVALID_JSON: written } }],
    })
  })
})

describe('a summary that the application asks for', () => {
  const calling: Answer = {
    pieces: [sseBytes([start(), ...toolBlock(0, 'toolu_1', 'look', '{}'), done('tool_use'), stop])],
  }
  const block = { type: 'compaction', content: 'They looked.', signature: 'sig' }
  const summary: Answer = {
    pieces: [
      sseBytes([
        start(),
        { type: 'content_block_start', index: 0, content_block: block },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'compaction', stop_sequence: null },
          usage: {
            ...{ input_tokens: 0, output_tokens: 0 },
            iterations: [{ type: 'compaction', input_tokens: 144, output_tokens: 27 }],
          },
        },
        stop,
      ]),
    ],
  }

  const summarize = {
    modelSettings: { providerOptions: { anthropic: { compaction: { type: 'summarize' } } } },
  }

  async function compacted() {
    const server = await serve(calling, summary, { pieces: [hello] }, { pieces: [hello] })
    const model = anthropic('claude-opus-5-5', { apiKey: 'k', baseURL: server.url, promptCache: 'off' })
    const agent = defineAgent({
      ...{ name: 'a', instructions: 'Be brief.', model, tools: [testTool({ name: 'look' })] },
      modelSettings: { stop: ['END'] },
      prepareTurn: ({ turn }) => (turn === 1 ? summarize : {}),
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent] })
    const first = await runtime.run(agent, 'Look.', { sessionId: 's' }).result
    const later = await runtime.run(agent, 'And now?', { sessionId: 's' }).result
    const events = await Array.fromAsync(ledger.read(first.runId))
    expect(auditAll(events)).toBeDefined()
    return { server, first, later, events }
  }

  it('given prepareTurn asks for it, when the turn runs, then the request has no fields for a reply', async () => {
    const { server } = await compacted()
    const { body, headers } = server.arrivals[1]!
    expect(body['compaction']).toEqual({ type: 'summarize' })
    expect(body['stop_sequences']).toBeUndefined()
    expect(server.arrivals[0]!.body['stop_sequences']).toEqual(['END'])
    expect(headers['anthropic-beta']).toContain('compact-2026-09-04')
  })

  it('given the summary, when the run and its session go on, then it replaces all messages before it', async () => {
    const { server, first, later } = await compacted()
    expect([first.reason, later.reason]).toEqual(['answered', 'answered'])
    const [third, fourth] = server.arrivals.slice(2).map(({ body }) => body)
    for (const body of [third!, fourth!]) expect(brokenRules(body)).toEqual([])
    expect(third!['messages']).toEqual([
      { role: 'assistant', content: [block] },
      { role: 'user', content: [{ type: 'text', text: '(Go on from this summary.)' }] },
    ])
    expect(fourth!['messages']).toMatchObject([
      ...(third!['messages'] as readonly object[]),
      { role: 'assistant', content: [{ type: 'text' }] },
      { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
    ])
  })

  it('given its usage, when it is counted, then all of it is billed, and only the summary fills the context', async () => {
    const { events } = await compacted()
    const used = events.flatMap((event) => (event.type === 'usage_updated' ? [event] : []))
    expect(used).toContainEqual(
      expect.objectContaining({
        usage: expect.objectContaining({ inputTokens: 144, outputTokens: 27 }),
        contextTokens: 27,
      }),
    )
  })
})
