// What becomes of an error that an OpenAI client threw, or that the stream reports: without a server, one fact at a time.
import { ProviderError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { readCode, toStreamFailure, toProviderError, readRequestId } from '../src/openai/failure.ts'

const headersOf = (given: Record<string, string>) => ({ get: (name: string) => given[name] ?? null })
const facts = { now: 1_000, requestId: 'req_of_the_call' }

interface Thrown {
  readonly status?: number
  readonly headers?: ReturnType<typeof headersOf>
  readonly error?: unknown
  readonly message?: string
  readonly cause?: unknown
}

const thrown = ({ status, headers, error, message = 'as worded', ...more }: Thrown): Error =>
  Object.assign(new Error(message), { status, headers, error, ...more })
const failure = (given: Thrown, known: object = facts): ProviderError =>
  toProviderError(thrown(given), { now: 1_000, ...known })

describe('an answer that an OpenAI client threw as an error', () => {
  it('names the request by its headers, in this order, else by the call, else not at all', () => {
    const all = { 'x-request-id': 'x', 'request-id': 'r', 'apim-request-id': 'a' }
    expect(readRequestId(headersOf(all))).toBe('x')
    expect(readRequestId(headersOf({ ...all, 'x-request-id': '' }))).toBe('r')
    expect(readRequestId(headersOf({ 'apim-request-id': 'a' }))).toBe('a')
    expect(readRequestId(headersOf({}))).toBeUndefined()
    expect(failure({ status: 500, headers: headersOf(all) }).requestId).toBe('x')
    expect(failure({ status: 500, headers: headersOf({}) }).requestId).toBe('req_of_the_call')
    expect(failure({ status: 500 }).requestId).toBe('req_of_the_call')
    expect(failure({ status: 500 }, {}).toFailure()).not.toHaveProperty('requestId')
    expect(toProviderError(new RangeError('x'), facts).requestId).toBe('req_of_the_call')
    expect(toProviderError(new RangeError('x'), { now: 0 }).toFailure()).not.toHaveProperty('requestId')
  })

  it('keeps the code of the vendor, also where the request is named later', () => {
    const coded = failure({ status: 429, error: { code: 'insufficient_quota' } }, {})
    expect(readCode(coded)).toBe('insufficient_quota')
    const named = toProviderError(coded, facts)
    expect([readCode(named), named.requestId]).toEqual(['insufficient_quota', 'req_of_the_call'])
    expect(readCode(failure({ status: 429, error: { type: 'x' } }))).toBeUndefined()
    const plain = new ProviderError({ class: 'server', message: 'x', retryable: true })
    expect(readCode(toProviderError(plain, facts))).toBeUndefined()
  })

  it.each<readonly [string, unknown, string]>([
    ['a text', 'Too much', 'The service answered 400: Too much.'],
    ['a message', { message: 'Too much' }, 'The service answered 400: Too much.'],
    ['a detail', { detail: 'Too much' }, 'The service answered 400: Too much.'],
    ['a detail in the message', { message: { detail: 'Too much' } }, 'The service answered 400: Too much.'],
    ['a message before a detail', { message: 'Too much', detail: 'No' }, 'answered 400: Too much.'],
    ['a code before a type', { message: 'm', code: 'c', type: 't' }, 'answered 400 (c): m.'],
    ['a type', { message: 'm', type: 't' }, 'answered 400 (t): m.'],
    ['a status for a code', { message: 'm', code: 404, type: 't' }, 'answered 400 (t): m.'],
    ['a status for a code as text', { message: 'm', code: '404', type: 't' }, 'answered 400 (t): m.'],
    ['a number that is not a status', { message: 'm', code: '399', type: 't' }, 'answered 400 (399): m.'],
    ['nothing', undefined, 'The service answered 400. The same request'],
    ['a list', ['m'], 'The service answered 400. The same request'],
  ])('has the words of %s', (_what, error, message) => {
    expect(failure({ status: 400, error }).message).toContain(message)
  })

  it('without a status is a reply that broke off, or a connection that did not come about', () => {
    const broken = failure({ error: { code: 'server_error', message: 'Oops.' } })
    expect(broken.toFailure()).toEqual({
      ...{ class: 'server', retryable: true, requestId: 'req_of_the_call' },
      message:
        'The service broke the reply off (server_error): Oops. The fault is on the other side; try again later.',
    })
    expect(readCode(broken)).toBe('server_error')
    const cause = (code: string) => ({ cause: Object.assign(new Error('x'), { code }) })
    expect(failure(cause('ECONNREFUSED')).message).toMatch(
      /^The service could not be reached \(ECONNREFUSED\)\./,
    )
    expect(failure({})).toMatchObject({ class: 'network', requestId: 'req_of_the_call' })
    for (const message of ['Request timed out.', 'timeout', 'Timed Out']) {
      expect(failure({ message })).toMatchObject({ class: 'timeout', retryable: true })
    }
  })

  it('of a client without a key says what to set', () => {
    for (const words of ['Missing Credentials', 'set the apikey', 'no authentication method']) {
      expect(toProviderError(new Error(words), facts)).toMatchObject({
        class: 'authentication',
        message:
          'There is no usable key for the call. Set a valid key (the option apiKey, or OPENAI_API_KEY).',
      })
    }
  })
})

describe('an error that the stream of OpenAI reports', () => {
  it('is judged by its code, its type, its status or its words', () => {
    const inStream = (error: unknown) => {
      const found = toStreamFailure(error)
      return [found.class, found.retryable, readCode(found)]
    }
    expect(inStream({ code: 'context_length_exceeded' })).toEqual([
      ...['context_overflow', false, 'context_length_exceeded'],
    ])
    expect(inStream({ code: 'new', type: 'authentication_error' })).toEqual(['authentication', false, 'new'])
    expect(inStream({ code: 404 })).toEqual(['not_found', false, undefined])
    expect(inStream({ code: '503' })).toEqual(['overloaded', true, undefined])
    for (const code of [399, 600, 404.5, 'x']) expect(inStream({ code })[0]).toBe('server')
    expect(inStream({ code: 599 })[0]).toBe('server')
    expect(inStream({ code: 400, message: 'maximum context' })[0]).toBe('context_overflow')
    expect(inStream('Oops')).toEqual(['server', true, undefined])
    for (const type of ['invalid_request_error', 'BadRequestError']) {
      expect(inStream({ type })).toEqual(['invalid_request', false, undefined])
    }
    expect(inStream({ type: 'constructor', code: 'toString' })).toEqual(['server', true, 'toString'])
    expect(toStreamFailure({ message: 'Oops' }).message).toBe(
      'The service broke the reply off: Oops. The fault is on the other side; try again later.',
    )
  })
})
