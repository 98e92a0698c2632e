import { inspect } from 'node:util'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { EmptyResponseBodyError, LoadAPIKeyError, UnsupportedFunctionalityError } from '@ai-sdk/provider'
import { describe, expect, it, vi } from 'vitest'
import { isMissingEnd, toProviderError } from '../src/ai-sdk/failure.ts'
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
    expect(toProviderError(error, { now: 0 })).toMatchObject({ class: failureClass, retryable })
  })
})

const coded = (code: string) => Object.assign(new Error('no'), { code })
const named = (name: string, more: object = {}) => Object.assign(new Error('no'), { name, ...more })
const answered = (statusCode: number | undefined, more: object = {}) =>
  named('AI_APICallError', { statusCode, isRetryable: true, ...more })

describe('a failure', () => {
  it.each<[type: string, failureClass: string, retryable: boolean]>([
    ['context_length_exceeded', 'context_overflow', false],
    ['request_too_large', 'context_overflow', false],
    ['exceed_context_size', 'context_overflow', false],
    ['overloaded_error', 'overloaded', true],
    ['insufficient_quota', 'rate_limited', false],
    ['billing_error', 'rate_limited', false],
    ['rate_limit_error', 'rate_limited', true],
    ['authentication_error', 'authentication', false],
    ['invalid_api_key', 'authentication', false],
    ['permission_error', 'permission', false],
    ['not_found_error', 'not_found', false],
    ['content_filter', 'content_filtered', false],
    ['content_policy_violation', 'content_filtered', false],
    ['timeout_error', 'timeout', true],
    ['invalid_request_error', 'invalid_request', false],
    ['invalid_prompt', 'invalid_request', false],
    ['api_error', 'server', true],
    ['server_error', 'server', true],
    ['internal', 'server', true],
    ['odd', 'server', true],
  ])(
    'that its vendor calls %s is %s, retryable: %s, in the stream and in an answer',
    (type, failureClass, retryable) => {
      const reported = { class: failureClass, retryable }
      expect(toProviderError({ type, message: 'Oops.' }, { now: 0 })).toMatchObject({
        ...reported,
        message: expect.stringContaining(`The reply was broken off (${type}): Oops. `),
      })
      const responseBody = JSON.stringify({ error: { type: 'odd', code: type, message: 'Oops' } })
      expect(toProviderError(answered(502, { responseBody }), { now: 0 })).toMatchObject({
        ...{ ...reported, status: 502 },
        message: expect.stringContaining(`The provider answered 502 (${type}): Oops. `),
      })
    },
  )

  it.each<[error: unknown, failureClass: string, retryable: boolean, words: string]>([
    [named('AI_LoadAPIKeyError'), 'authentication', false, 'There is no usable key for the call'],
    [named('AI_LoadSettingError'), 'invalid_request', false, 'The provider lacks a setting'],
    [named('AI_NoSuchModelError'), 'not_found', false, 'The provider knows no such model'],
    [named('AI_UnsupportedFunctionalityError'), 'invalid_request', false, 'The provider cannot do what'],
    [named('AI_InvalidPromptError'), 'invalid_request', false, 'The provider cannot send such a history'],
    [named('AI_InvalidArgumentError'), 'invalid_request', false, 'The provider takes no such setting'],
    [named('AI_EmptyResponseBodyError'), 'truncated', true, 'The answer is empty'],
    [named('AI_JSONParseError'), 'protocol', true, 'The stream holds an event that is not valid JSON'],
    [
      named('AI_TypeValidationError'),
      'protocol',
      true,
      'The stream holds an event that the provider does not',
    ],
    [named('AI_InvalidResponseDataError'), 'protocol', true, 'The stream contradicts itself'],
    [named('toString'), 'protocol', false, 'The call failed unexpectedly (toString)'],
    [answered(undefined), 'network', true, 'The provider could not be reached. '],
    [answered(undefined, { cause: coded('ECONNREFUSED') }), 'network', true, 'be reached (ECONNREFUSED)'],
    [answered(undefined, { cause: coded('ETIMEDOUT') }), 'timeout', true, 'be reached (ETIMEDOUT)'],
    [answered(200), 'protocol', true, 'The answer is not a reply'],
    [answered(200, { isRetryable: false }), 'protocol', false, 'The answer is not a reply'],
    [answered(399, { cause: coded('ECONNRESET') }), 'network', true, 'The connection broke (ECONNRESET)'],
    [answered(200, { cause: coded('ETIMEDOUT') }), 'timeout', true, 'The connection broke (ETIMEDOUT)'],
    [answered(400), 'invalid_request', false, 'The provider answered 400. '],
    [answered(400, { responseBody: 'no JSON' }), 'invalid_request', false, 'The provider answered 400. '],
    [answered(503, { responseBody: '{"error":"Busy"}' }), 'overloaded', true, 'answered 503: Busy. '],
    [{ code: 399, message: 'x' }, 'server', true, 'The reply was broken off: x'],
    [{ code: 400, message: 'x' }, 'invalid_request', false, 'The reply was broken off: x'],
    [{ code: 599, message: 'x' }, 'server', true, 'The reply was broken off: x'],
    [{ code: 600, message: 'x' }, 'server', true, 'The reply was broken off: x'],
    [{ code: 400, message: 'exceeds the maximum context length' }, 'context_overflow', false, 'broken off'],
    [{ message: 'exceeds the maximum context length' }, 'server', true, 'broken off'],
    [{}, 'protocol', false, 'The call failed unexpectedly (object)'],
    ['', 'protocol', false, 'The call failed unexpectedly (string)'],
    [undefined, 'protocol', false, 'The call failed unexpectedly (undefined)'],
  ])('of %o is %s, retryable: %s, and says: %s', (error, failureClass, retryable, words) => {
    const failure = toProviderError(error, { now: 0 })
    expect(failure).toMatchObject({ class: failureClass, retryable })
    expect(failure.message).toContain(words)
    expect(toProviderError(failure, { now: 0 })).toBe(failure)
  })

  it.each([
    [{ 'request-id': 'a', 'x-request-id': 'b' }, { requestId: 'a' }],
    [
      { 'x-request-id': 'b', 'retry-after': '2' },
      { requestId: 'b', retryAfterMs: 2000 },
    ],
    [{}, {}],
  ])('keeps of the headers %o what is known', (responseHeaders, kept) => {
    const {
      class: _,
      retryable: __,
      message: ___,
      ...reported
    } = toProviderError(answered(429, { responseHeaders }), { now: 0 }).toFailure()
    expect(reported).toStrictEqual({ status: 429, ...kept })
  })

  it.each<[unknown, boolean]>([
    [named('AI_InvalidResponseDataError', { message: 'The stream ended without a finish reason.' }), true],
    [named('AI_InvalidResponseDataError'), false],
    [new Error('stream ended without a finish reason'), false],
    [{ name: 'AI_InvalidResponseDataError', message: 'stream ended without a finish reason' }, false],
  ])('says that the end is missing, or not: %o', (error, is) => {
    expect(isMissingEnd(error)).toBe(is)
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
    expect(toProviderError(error, { now: 0 })).toMatchObject({ class: failureClass, retryable })
  })

  it('by a provider without a key is a matter of authentication, and fails the call', async () => {
    vi.stubEnv('ANTHROPIC_API_KEY', undefined)
    const baseURL = 'http://127.0.0.1:9'
    const { failure } = await collect(fromAiSdk(createAnthropic({ baseURL })('claude-test-1')))
    vi.unstubAllEnvs()
    expect(failure).toMatchObject({ class: 'authentication', retryable: false })
  })
})
