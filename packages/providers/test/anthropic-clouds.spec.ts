import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk'
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk'
import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { inPiecesOf, sseBytes } from './kit/bytes.ts'
import { callsOf, collect, finished, lastUsage, request } from './kit/collect.ts'
import { fold } from './kit/fold.ts'
import { type Answer, serve } from './kit/loopback.ts'
import { forbidConsole } from './kit/quiet.ts'
import { done, rich, start, stop, textBlock } from './kit/streams.ts'

forbidConsole()

/** One message of Amazon's binary event stream: lengths, headers and payload, each followed by a sum. */
function frame(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const named = Object.entries(headers).map(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(Buffer.byteLength(value))
    return Buffer.concat([
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7]),
      length,
      Buffer.from(value),
    ])
  })
  const head = Buffer.concat(named)
  const body = Buffer.from(JSON.stringify(payload))
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(16 + head.length + body.length, 0)
  prelude.writeUInt32BE(head.length, 4)
  const front = Buffer.concat([prelude, sum(prelude), head, body])
  return Buffer.concat([front, sum(front)])
}

function sum(bytes: Buffer): Buffer {
  const four = Buffer.alloc(4)
  four.writeUInt32BE(crc32(bytes))
  return four
}

function amazonBytes(events: readonly object[]): Uint8Array {
  const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' }
  return Buffer.concat(
    events.map((event) => frame(headers, { bytes: Buffer.from(JSON.stringify(event)).toString('base64') })),
  )
}

const bedrock = (baseURL: string) =>
  new AnthropicBedrock({
    ...{
      awsAccessKey: 'AKIA',
      awsSecretKey: 'very-secret',
      awsRegion: 'eu-central-1',
      baseURL,
      maxRetries: 0,
    },
  })
const authClient = {
  ...{
    projectId: 'my-project',
    getRequestHeaders: () => Promise.resolve(new Headers({ authorization: 'Bearer t' })),
  },
} as unknown as NonNullable<ConstructorParameters<typeof AnthropicVertex>[0]>['authClient'] & object
const vertex = (baseURL: string) =>
  new AnthropicVertex({ region: 'europe-west1', projectId: 'my-project', authClient, baseURL, maxRetries: 0 })

const clouds = {
  Bedrock: {
    client: bedrock,
    answer: (events: readonly object[]): Answer => ({
      headers: { 'content-type': 'application/vnd.amazon.eventstream', 'x-amzn-requestid': 'req_cloud' },
      pieces: inPiecesOf(97, amazonBytes(events)),
    }),
    path: '/model/claude-test-1/invoke-with-response-stream',
  },
  Vertex: {
    client: vertex,
    answer: (events: readonly object[]): Answer => ({
      headers: { 'request-id': 'req_cloud' },
      pieces: inPiecesOf(97, sseBytes(events)),
    }),
    path: '/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-test-1:streamRawPredict',
  },
}

describe.each(Object.entries(clouds))('%s, by its own client', (_, { client, answer, path }) => {
  it('streams the same reply', async () => {
    const server = await serve(answer(rich))
    const model = anthropic('claude-test-1', { client: client(server.url), betas: ['a-2026'] })
    const { signals, failure } = await collect(model)
    expect(failure).toBeUndefined()
    expect(signals).toEqual(fold(rich).signals)
    expect(callsOf(signals)).toHaveLength(2)
    expect(lastUsage(signals)).toMatchObject({ inputTokens: 120, outputTokens: 64 })
    expect(server.arrivals[0]).toMatchObject({
      path,
      body: { max_tokens: 32_000, messages: [{ role: 'user' }], anthropic_version: expect.any(String) },
    })
    expect(JSON.stringify(server.arrivals[0]!.body)).not.toContain('very-secret')
  })

  it('that stops in the middle fails as truncated, with the id of its own request', async () => {
    const server = await serve(answer([start(), ...textBlock(0, 'Hel')]))
    const { failure } = await collect(anthropic('claude-test-1', { client: client(server.url) }))
    expect(failure).toMatchObject({ class: 'truncated', retryable: true, requestId: 'req_cloud' })
  })

  it('that refuses says why', async () => {
    const server = await serve({ status: 429, pieces: [JSON.stringify({ message: 'Too many requests' })] })
    const { failure } = await collect(anthropic('claude-test-1', { client: client(server.url) }))
    expect(failure).toMatchObject({ class: 'rate_limited', retryable: true, status: 429 })
    expect(server.arrivals).toHaveLength(1)
  })

  it('is left as soon as its subscriber leaves', async () => {
    const { pieces, headers } = answer([start(), ...textBlock(0, 'Hel')])
    const server = await serve({ ...(headers && { headers }), pieces: pieces!, ending: 'stall' })
    const model = anthropic('claude-test-1', { client: client(server.url) })
    const clock = { now: () => 0, schedule: () => () => {} }
    const call = model.stream(request, { clock }).subscribe((signal) => {
      if (signal.type === 'model_text') call.unsubscribe()
    })
    await (
      await server.arrival(0)
    ).closed
    expect(call.closed).toBe(true)
  })
})

it('a reply over Bedrock is whole by the same proof', async () => {
  const server = await serve(clouds.Bedrock.answer([start(), ...textBlock(0, 'Hi'), done('end_turn'), stop]))
  const { signals } = await collect(anthropic('claude-test-1', { client: bedrock(server.url) }))
  expect(finished(signals)).toMatchObject({ stopReason: 'end', parts: [{ type: 'text', text: 'Hi' }] })
})
