import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { toProviderError } from '../src/anthropic/failure.ts'
import { anthropic } from '../src/anthropic.ts'
import { readRetryAfterMs } from '../src/shared/failure.ts'
import { collect, request } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'

const apiKey = 'sk-ant-api03-veryverysecret'
const errorBody = (type: string, message: string, details: object | null = null) =>
  JSON.stringify({ type: 'error', error: { type, message, details }, request_id: 'req_body' })

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
      'prompt is too long: 207791 tokens > 200000 maximum',
      'context_overflow',
      false,
    ],
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
    [422, 'invalid_request', false],
    [408, 'timeout', true],
    [413, 'context_overflow', false],
    [429, 'rate_limited', true],
    [502, 'server', true],
    [503, 'overloaded', true],
    [501, 'server', false],
  ])('%i in the words of a gateway is %s, retryable: %s', async (status, failureClass, retryable) => {
    const failure = await refused(status, '<html><h1>payload-of-the-gateway</h1></html>', {
      'content-type': 'text/html',
    })
    expect(failure).toMatchObject({ class: failureClass, retryable, status })
    expect(failure.message).not.toContain('payload-of-the-gateway')
  })

  it('at a spending limit is not one that waiting cures', async () => {
    const details = { error_code: 'enforced_spend_limit_reached' }
    const failure = await refused(429, errorBody('rate_limit_error', 'Limit reached', details))
    expect(failure).toMatchObject({ class: 'rate_limited', retryable: false })
  })

  it.each([
    [{ 'x-should-retry': 'false' }, 500, 'api_error', false],
    [{ 'x-should-retry': 'true' }, 400, 'invalid_request_error', true],
  ])('obeys the header %o', async (headers, status, type, retryable) => {
    expect((await refused(status, errorBody(type, 'x'), headers)).retryable).toBe(retryable)
  })

  it.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '1500.2', 'retry-after': '9' }, 1501],
    [{ 'retry-after': new Date(Date.UTC(2026, 0, 1, 0, 0, 30)).toUTCString() }, 30_000],
    [{ 'retry-after': new Date(Date.UTC(2025, 0, 1)).toUTCString() }, undefined],
    [{ 'retry-after': '0' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('with %o asks for a wait of %s ms', async (headers, waitMs) => {
    expect((await refused(429, errorBody('rate_limit_error', 'x'), headers)).retryAfterMs).toBe(waitMs)
  })

  it('tells the vendor’s words in one bounded line, without what looks like a key', async () => {
    const words = `bad key ${apiKey}\nand Bearer abc.def ${'long '.repeat(200)}`
    const failure = await refused(401, errorBody('authentication_error', words))
    expect(failure.message.length).toBeLessThan(500)
    expect(failure.message).not.toMatch(/\n|veryverysecret|abc\.def/)
    expect(inspect(failure, { depth: 9 })).not.toContain('veryverysecret')
  })

  it('keeps the vendor’s body and headers out of the error', async () => {
    const failure = await refused(
      400,
      JSON.stringify({
        error: { type: 'invalid_request_error', message: 'no', details: { input: 'the payload' } },
      }),
      { 'set-cookie': 'session=1' },
    )
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toMatch(/the payload|session=1/)
    expect(failure.toFailure()).toEqual({
      class: 'invalid_request',
      message: failure.message,
      retryable: false,
      status: 400,
      requestId: 'req_1',
    })
  })
})

describe('a connection that does not come about', () => {
  it('because no server listens is a network failure', async () => {
    // Given to no server: one that was free a moment ago may be another's by now.
    const port = 3
    const { failure } = await collect(
      anthropic('claude-test-1', { apiKey, baseURL: `http://127.0.0.1:${port}` }),
    )
    expect(failure).toMatchObject({ class: 'network', retryable: true })
    expect(failure?.message).toContain('ECONNREFUSED')
  })

  it('because the server hangs up is a network failure', async () => {
    const rude = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve))
    const { port } = rude.address() as AddressInfo
    const { failure } = await collect(
      anthropic('claude-test-1', { apiKey, baseURL: `http://127.0.0.1:${port}` }),
    )
    await new Promise<void>((resolve) => rude.close(() => resolve()))
    expect(failure).toMatchObject({ class: 'network', retryable: true })
  })

  it('because the caller’s client finds no key is a matter of authentication', async () => {
    const client = {
      messages: {
        create: () =>
          Promise.reject(new Error('Could not resolve authentication method. Expected one of apiKey')),
      },
    }
    const { failure } = await collect(anthropic('claude-test-1', { client }))
    expect(failure).toMatchObject({ class: 'authentication', retryable: false })
  })

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

describe('an error that was thrown', () => {
  const facts = { now: 0 }
  it.each([
    [new TypeError('terminated'), 'network', true],
    [
      new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ENOTFOUND' }) }),
      'network',
      true,
    ],
    [
      new TypeError('terminated', { cause: Object.assign(new Error('x'), { code: 'UND_ERR_BODY_TIMEOUT' }) }),
      'timeout',
      true,
    ],
    [Object.assign(new Error('x'), { code: 'CERT_HAS_EXPIRED' }), 'network', true],
    [new TypeError("Cannot read properties of undefined (reading 'id')"), 'protocol', false],
    [Object.assign(new TypeError('x'), { code: 'ERR_INVALID_ARG_TYPE' }), 'protocol', false],
    ['a word', 'protocol', false],
  ])('%s is %s, retryable: %s', (error, failureClass, retryable) => {
    expect(toProviderError(error, facts)).toMatchObject({ class: failureClass, retryable })
  })
})

it('retry-after prefers milliseconds, and reads dates against the given now', () => {
  const headers = (given: Record<string, string>) => ({ get: (name: string) => given[name] ?? null })
  expect(readRetryAfterMs(headers({ 'retry-after-ms': 'x', 'retry-after': '2' }), 0)).toBe(2000)
  expect(readRetryAfterMs(headers({ 'retry-after': 'Thu, 01 Jan 1970 00:01:00 GMT' }), 15_000)).toBe(45_000)
  expect(readRetryAfterMs(headers({ 'retry-after': '-3' }), 0)).toBeUndefined()
})
