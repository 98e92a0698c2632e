// What becomes of an error that a client threw, or that the stream of a reply reports: without a server, one fact at a time.
import { ProviderError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { toStreamFailure, toProviderError } from '../src/anthropic/failure.ts'

describe('an answer that a client threw as an error', () => {
  const facts = { now: 1_000, requestId: 'req_of_the_call' }
  interface Thrown {
    readonly status?: number
    readonly headers?: { get: (name: string) => string | null }
    readonly error?: unknown
    readonly type?: string | null
    readonly requestID?: string | null
    readonly name?: string
    readonly cause?: unknown
  }
  const thrown = ({ status, headers, error, ...more }: Thrown): Error =>
    Object.assign(new Error('as the client words it'), { status, headers, error, ...more })
  const failure = (given: Thrown, known: Partial<typeof facts> = facts) =>
    toProviderError(thrown(given), { now: 1_000, ...known }).toFailure()

  it('names the request by the id of the answer, else by that of the call, else not at all', () => {
    expect(failure({ status: 500, requestID: 'req_of_the_answer' }).requestId).toBe('req_of_the_answer')
    for (const requestID of [null, undefined]) {
      expect(failure({ status: 500, requestID: requestID as never }).requestId).toBe('req_of_the_call')
      expect(failure({ status: 500, requestID: requestID as never }, {})).not.toHaveProperty('requestId')
    }
    const own = new ProviderError({ class: 'server', message: 'x', retryable: true, requestId: 'req_own' })
    expect(toProviderError(own, facts)).toBe(own)
    const without = new ProviderError({ class: 'server', message: 'x', retryable: true }, { cause: 'why' })
    expect(toProviderError(without, { now: 0 })).toBe(without)
    expect(toProviderError(without, facts)).toMatchObject({ requestId: 'req_of_the_call', cause: 'why' })
    expect(toProviderError(new RangeError('x'), facts).requestId).toBe('req_of_the_call')
    expect(toProviderError(new RangeError('x'), { now: 0 }).requestId).toBeUndefined()
  })

  it('has the words and the type from where the vendor, or a gateway, puts them', () => {
    const inner = { type: 'overloaded_error', message: 'Busy.' }
    const vendors = failure({ status: 529, error: { type: 'error', error: inner } })
    expect(vendors).toMatchObject({ class: 'overloaded', status: 529 })
    expect(vendors.message).toContain('Anthropic answered 529 (overloaded_error): Busy. The service is busy')
    expect(failure({ status: 400, error: inner }).message).toContain('400 (overloaded_error): Busy.')
    expect(failure({ status: 400, error: inner, type: 'api_error' })).toMatchObject({ class: 'server' })
    expect(failure({ status: 400, error: inner, type: null })).toMatchObject({ class: 'overloaded' })
    expect(failure({ status: 403, error: { error: 'No entry' } }).message).toContain(
      'Anthropic answered 403: No entry. The account',
    )
    for (const error of [undefined, null, 'text', [inner]]) {
      expect(failure({ status: 503, error }).message).toBe(
        'Anthropic answered 503. The service is busy; try again later.',
      )
    }
  })

  it('goes by the status where the type is not known, also where it is the name of a member of objects', () => {
    for (const type of ['some_new_error', 'constructor', 'toString', '']) {
      expect(failure({ status: 404, error: { error: { type } } })).toMatchObject({
        ...{ class: 'not_found', retryable: false },
      })
    }
  })

  it('ends for good at each limit on money, and only there', () => {
    const limited = (error_code: string) =>
      failure({ status: 429, error: { error: { type: 'rate_limit_error', details: { error_code } } } })
    for (const code of [
      'ramp_limit_exceeded',
      'contract_spend_limit_reached',
      'enforced_spend_limit_reached',
    ]) {
      expect(limited(code)).toMatchObject({ class: 'rate_limited', retryable: false })
    }
    expect(limited('tokens_per_minute')).toMatchObject({ class: 'rate_limited', retryable: true })
  })

  it('reads words about the context, or the filter, only in a request that was refused', () => {
    for (const [status, words, found] of [
      [400, 'prompt is too long', 'context_overflow'],
      [400, 'The input exceeds the model’s limit', 'invalid_request'],
      [400, 'input exceeds the maximum context', 'context_overflow'],
      [400, "It exceed its model's maximum context", 'context_overflow'],
      [400, 'Context length reached', 'context_overflow'],
      [400, 'above the context window', 'context_overflow'],
      [400, 'maximum context', 'context_overflow'],
      [400, 'request_too_large', 'context_overflow'],
      [400, 'Blocked by the Content Filtering Policy', 'content_filtered'],
      [400, 'something else', 'invalid_request'],
      [500, 'prompt is too long', 'server'],
      [500, 'content filtering policy', 'server'],
    ] as const) {
      expect([words, failure({ status, error: { error: { message: words } } }).class]).toEqual([words, found])
    }
  })

  it('without a status is a reply that broke off where it has a type, else a connection that did not come about', () => {
    const broken = failure({ type: 'overloaded_error', error: { error: { message: 'Too busy' } } })
    expect(broken).toEqual({
      class: 'overloaded',
      retryable: true,
      requestId: 'req_of_the_call',
      message:
        'Anthropic broke the reply off (overloaded_error): Too busy. The service is busy; try again later.',
    })
    const code = (name: string) => ({ cause: Object.assign(new Error('x'), { code: name }) })
    expect(failure(code('ECONNREFUSED'))).toMatchObject({
      class: 'network',
      message:
        'Anthropic could not be reached (ECONNREFUSED). Check that the address can be reached, then try again.',
      requestId: 'req_of_the_call',
    })
    expect(failure({})).toMatchObject({ class: 'network', retryable: true })
    expect(failure(code('ETIMEDOUT')).message).toContain('No answer came in time (ETIMEDOUT).')
    for (const name of ['APIConnectionTimeoutError', 'timeout']) {
      expect(failure({ name })).toMatchObject({ class: 'timeout', retryable: true })
      expect(failure({ name }).message).toContain('No answer came in time. Try again')
    }
  })

  it('of a client without a key, or in a browser, says what to do', () => {
    for (const words of [
      'Could not resolve authentication method',
      'no Credential',
      'set APIKEY',
      'a profile',
    ]) {
      expect(toProviderError(new Error(words), facts)).toMatchObject({
        ...{ class: 'authentication', retryable: false, requestId: 'req_of_the_call' },
        message:
          'There is no usable key for the call. Set a valid key (the option apiKey, or ANTHROPIC_API_KEY).',
      })
    }
    const browser = toProviderError(new Error('dangerouslyAllowBrowser: credentials at risk'), facts)
    expect(browser).toMatchObject({ class: 'invalid_request', retryable: false })
    expect(browser.message).toContain('pass a client that was made with dangerouslyAllowBrowser')
    expect(toProviderError(new SyntaxError('no credential'), facts)).toMatchObject({
      ...{ class: 'protocol', retryable: true },
      message:
        'The stream holds an event that is not valid JSON. The answer cannot be trusted; check baseURL and any gateway on the way.',
    })
  })
})

describe('an error that the stream reports', () => {
  it('is judged by its type and its words', () => {
    expect(toStreamFailure({ type: 'overloaded_error', message: 'Overloaded' }).toFailure()).toEqual({
      class: 'overloaded',
      retryable: true,
      message:
        'Anthropic broke the reply off (overloaded_error): Overloaded. The service is busy; try again later.',
    })
    expect(toStreamFailure({}).toFailure()).toMatchObject({
      ...{ class: 'server', retryable: true },
      message: 'Anthropic broke the reply off. The fault is on the other side; try again later.',
    })
    const long = { type: 'invalid_request_error', message: 'prompt is too long' }
    expect(toStreamFailure(long)).toMatchObject({ class: 'context_overflow', retryable: false })
  })
})
