import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { readRetryAfterMs } from '../src/shared/failure.ts'
import { collect, request } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'

const apiKey = 'sk-ant-api03-veryverysecret'
const errorBody = (type: string, message: string) =>
  JSON.stringify({ type: 'error', error: { type, message, details: null }, request_id: 'req_body' })

async function refused(status: number, body: string, headers: Record<string, string> = {}) {
  const json: Answer = {
    status,
    pieces: [body],
    headers: { 'content-type': 'application/json', 'request-id': 'req_1', ...headers },
  }
  const server = await serve(json)
  const outcome = await collect(anthropic('claude-test-1', { apiKey, baseURL: server.url }))
  expect(outcome.signals).toEqual([])
  // The runtime tries again, not the SDK.
  expect(server.arrivals).toHaveLength(1)
  return outcome.failure!
}

describe('a refusal over HTTP', () => {
  it.each([
    [400, 'invalid_request_error', 'messages.0: content is required', 'invalid_request', false],
    [
      400,
      'invalid_request_error',
      'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000',
      'context_overflow',
      false,
    ],
    [400, 'invalid_request_error', 'Output blocked by content filtering policy', 'content_filtered', false],
    [401, 'authentication_error', 'invalid x-api-key', 'authentication', false],
    [402, 'billing_error', 'Your credit is used up', 'permission', false],
    [403, 'permission_error', 'Not allowed', 'permission', false],
    [404, 'not_found_error', 'model: claude-none', 'not_found', false],
    [409, 'conflict_error', 'Locked', 'server', true],
    [413, 'request_too_large', 'Request exceeds the maximum size', 'context_overflow', false],
    [429, 'rate_limit_error', 'Too many tokens a minute', 'rate_limited', true],
    [500, 'api_error', 'Internal server error', 'server', true],
    [504, 'timeout_error', 'Request timed out', 'timeout', true],
    [529, 'overloaded_error', 'Overloaded', 'overloaded', true],
  ])('%i %s "%s" is %s, retryable: %s', async (...row) => {
    const [status, type, message, failureClass, retryable] = row
    const failure = await refused(status, errorBody(type, message))
    expect(failure).toMatchObject({
      class: failureClass,
      retryable,
      status,
      requestId: 'req_1',
      code: 'provider',
    })
    expect(failure.message).toContain(`${status} (${type}): ${message}`)
  })

  it.each([
    [{ 'x-should-retry': 'false' }, 500, 'api_error', false],
    [{ 'x-should-retry': 'true' }, 400, 'invalid_request_error', true],
  ])('obeys the header %o', async (headers, status, type, retryable) => {
    expect((await refused(status, errorBody(type, 'x'), headers)).retryable).toBe(retryable)
  })
})

describe('a connection that does not come about', () => {
  it('because the client throws at once fails the call, not the subscriber', async () => {
    const client = {
      messages: {
        create() {
          throw new RangeError('a mistake in the client')
        },
      },
    }
    const { failure } = await collect(anthropic('claude-test-1', { client }), request, new ManualClock())
    expect(failure).toMatchObject({ class: 'protocol', retryable: false })
    expect(failure?.cause).toBeInstanceOf(RangeError)
  })
})

it('retry-after prefers milliseconds, and reads dates against the given now', () => {
  const headers = (given: Record<string, string>) => ({ get: (name: string) => given[name] ?? null })
  expect(readRetryAfterMs(headers({ 'retry-after-ms': 'x', 'retry-after': '2' }), 0)).toBe(2000)
  expect(readRetryAfterMs(headers({ 'retry-after': 'Thu, 01 Jan 1970 00:01:00 GMT' }), 15_000)).toBe(45_000)
  expect(readRetryAfterMs(headers({ 'retry-after': '-3' }), 0)).toBeUndefined()
})
