import { inspect } from 'node:util'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { EmptyResponseBodyError, LoadAPIKeyError, UnsupportedFunctionalityError } from '@ai-sdk/provider'
import { describe, expect, it, vi } from 'vitest'
import { providerErrorOf } from '../src/ai-sdk/client/failure.ts'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { start, textBlock } from './kit/streams.ts'

const apiKey = 'sk-ant-api03-veryverysecret'
const makers = {
  anthropic: (url: string) => createAnthropic({ apiKey, baseURL: `${url}/v1` })('claude-test-1'),
  openai: (url: string) => createOpenAI({ apiKey, baseURL: url }).chat('gpt-test'),
}

async function failureOf(answer: Answer, maker: keyof typeof makers = 'anthropic') {
  const server = await serve(answer)
  const outcome = await collect(fromAiSdk(makers[maker](server.url)))
  expect(server.arrivals).toHaveLength(1)
  return { ...outcome, failure: outcome.failure! }
}

const refusal = (status: number, error: object, headers: Record<string, string> = {}): Answer => ({
  status,
  pieces: [JSON.stringify({ type: 'error', error })],
  headers: { 'content-type': 'application/json', ...headers },
})

describe('a refusal over HTTP', () => {
  it.each([
    [
      'anthropic',
      400,
      { type: 'invalid_request_error', message: 'messages: required' },
      'invalid_request',
      false,
    ],
    [
      'anthropic',
      400,
      { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens' },
      'context_overflow',
      false,
    ],
    [
      'anthropic',
      401,
      { type: 'authentication_error', message: 'invalid x-api-key' },
      'authentication',
      false,
    ],
    ['anthropic', 413, { type: 'request_too_large', message: 'Too large' }, 'context_overflow', false],
    ['anthropic', 529, { type: 'overloaded_error', message: 'Overloaded' }, 'overloaded', true],
    [
      'openai',
      400,
      { code: 'context_length_exceeded', type: 'invalid_request_error', message: 'Too long' },
      'context_overflow',
      false,
    ],
    [
      'openai',
      401,
      { code: 'invalid_api_key', type: 'invalid_request_error', message: 'Wrong key' },
      'authentication',
      false,
    ],
    [
      'openai',
      404,
      { code: 'model_not_found', type: 'invalid_request_error', message: 'No model' },
      'not_found',
      false,
    ],
    [
      'openai',
      429,
      { code: 'rate_limit_exceeded', type: 'tokens', message: 'Slow down' },
      'rate_limited',
      true,
    ],
    [
      'openai',
      429,
      { code: 'insufficient_quota', type: 'insufficient_quota', message: 'No credit' },
      'rate_limited',
      false,
    ],
    ['openai', 500, { code: null, type: 'server_error', message: 'Oops' }, 'server', true],
  ] as const)('by %s, %i %o is %s, retryable: %s', async (...row) => {
    const [maker, status, error, failureClass, retryable] = row
    const { failure, signals } = await failureOf(refusal(status, error), maker)
    expect(signals).toEqual([])
    expect(failure).toMatchObject({ class: failureClass, retryable, status, code: 'provider' })
    expect(failure.message).toContain(error.message)
  })

  it('keeps the wait and the id, and nothing of the request, of the answer or of the key', async () => {
    const error = { type: 'rate_limit_error', message: `Slow down, ${apiKey}`, details: 'the payload' }
    const headers = { 'retry-after': '7', 'request-id': 'req_1', 'set-cookie': 'session=1' }
    const { failure } = await failureOf(refusal(429, error, headers))
    expect(failure.toFailure()).toEqual({
      ...{ class: 'rate_limited', retryable: true, status: 429, requestId: 'req_1', retryAfterMs: 7000 },
      message: failure.message,
    })
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toMatch(
      /veryverysecret|the payload|session=1|Be brief/,
    )
  })
})

describe('an error in the stream', () => {
  it('has the class of what the vendor says, and keeps what was said before', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
    const { failure, signals } = await failureOf({
      pieces: [sseBytes([start(), ...textBlock(0, 'So'), error])],
    })
    expect(failure).toMatchObject({ class: 'overloaded', retryable: true })
    expect(textShown(signals)).toBe('So')
  })

  it('of an event that is not JSON shows nothing of it', async () => {
    const garbage = 'event: content_block_start\ndata: {"secret": nope\n\n'
    const { failure } = await failureOf({ pieces: [sseBytes([start()]), garbage] })
    expect(failure).toMatchObject({ class: 'protocol', retryable: true })
    expect(inspect(failure, { depth: 9 })).not.toContain('nope')
  })

  it.each([
    [{ message: 'Token limit reached', code: 400 }, 'invalid_request', false],
    [{ error: { type: 'rate_limit_error', message: 'Slow down' } }, 'rate_limited', true],
    ['the server fell over', 'server', true],
    [
      { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
      'content_filtered',
      false,
    ],
  ])('that is %o is %s, retryable: %s', (error, failureClass, retryable) => {
    expect(providerErrorOf(error, { now: 0 })).toMatchObject({ class: failureClass, retryable })
  })
})

describe('an error that was thrown', () => {
  it.each([
    [new LoadAPIKeyError({ message: 'API key is missing' }), 'authentication', false],
    [new UnsupportedFunctionalityError({ functionality: 'tool content: file' }), 'invalid_request', false],
    [new EmptyResponseBodyError(), 'truncated', true],
    [new TypeError('terminated'), 'network', true],
    [Object.assign(new Error('x'), { code: 'UND_ERR_BODY_TIMEOUT' }), 'timeout', true],
    [new RangeError('a mistake'), 'protocol', false],
    [7, 'protocol', false],
  ])('%s is %s, retryable: %s', (error, failureClass, retryable) => {
    expect(providerErrorOf(error, { now: 0 })).toMatchObject({ class: failureClass, retryable })
  })

  it('by a provider without a key is a matter of authentication, and fails the call', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', undefined)
    const baseURL = 'http://127.0.0.1:9'
    const { failure } = await collect(fromAiSdk(createAnthropic({ baseURL })('claude-test-1')))
    vi.unstubAllEnvs()
    expect(failure).toMatchObject({ class: 'authentication', retryable: false })
  })
})
