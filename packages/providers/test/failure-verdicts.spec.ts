import { describe, expect, it } from 'vitest'
import {
  toClientFailure,
  createCommonFailures,
  toConnectionFailure,
  formatFailureText,
  isApiError,
  formatName,
  readNetworkFailure,
  quoteFailure,
  readStatedRetry,
  judgeStatus,
  withRequestId,
} from '../src/shared/failure.ts'

const advice = { authentication: 'Mend the key.', permission: 'Ask.', not_found: 'Look.' }
const failures = createCommonFailures({ who: 'The wire', advice })
const coded = (code: unknown, cause?: unknown) => Object.assign(new Error('no', { cause }), { code })
/** An error within so many others. */
const within = (depth: number, error: Error): Error =>
  depth === 0 ? error : within(depth - 1, new Error('outer', { cause: error }))

describe('a broken connection', () => {
  const network = (code: string) => ({ class: 'network', code })
  const timeout = (code: string) => ({ class: 'timeout', code })
  it.each<[unknown, object | undefined]>([
    ...['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_SSL_WRONG_VERSION']
      .concat('CERT_HAS_EXPIRED', 'ConnectionRefused', 'DEPTH_ZERO_SELF_SIGNED_CERT')
      .concat('UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SELF_SIGNED_CERT_IN_CHAIN')
      .map((code): [unknown, object] => [coded(code), network(code)]),
    ...['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'].map(
      (code): [unknown, object] => [coded(code), timeout(code)],
    ),
    ...['ERR_INVALID_ARG_TYPE', 'ERR_STREAM_DESTROYED', '', 7].map((code): [unknown, undefined] => [
      coded(code),
      undefined,
    ]),
    [coded('ERR_INVALID_STATE', coded('ECONNRESET')), network('ECONNRESET')],
    [within(4, coded('EPIPE')), network('EPIPE')],
    [within(5, coded('EPIPE')), undefined],
    [{ code: 'EPIPE' }, undefined],
    [new TypeError('fetch failed'), { class: 'network' }],
    [new TypeError('fetch failed', { cause: coded('ETIMEDOUT') }), timeout('ETIMEDOUT')],
    ...[
      'terminated',
      'Failed to fetch',
      'NetworkError when …',
      'network error',
      'Load failed',
      'error sending request',
    ].map((text): [unknown, object] => [new TypeError(text), { class: 'network' }]),
    [new TypeError('x is not a function'), undefined],
    [new TypeError('it was terminated'), undefined],
    [new Error('fetch failed'), undefined],
    ['fetch failed', undefined],
    [undefined, undefined],
  ])('is distinguished from other errors: %s', (error, found) => {
    expect(readNetworkFailure(error)).toEqual(found)
  })

  it.each<[unknown, boolean, string, RegExp]>([
    [coded('ECONNRESET'), false, 'network', /^The wire could not be reached \(ECONNRESET\)\. /],
    [coded('ETIMEDOUT'), false, 'timeout', /^No answer came in time \(ETIMEDOUT\)\. /],
    [coded('ECONNRESET'), true, 'timeout', /^No answer came in time \(ECONNRESET\)\. /],
    [undefined, false, 'network', /^The wire could not be reached\. /],
    [undefined, true, 'timeout', /^No answer came in time\. /],
  ])(
    'before any answer is a failure that may be tried again: %s',
    (cause, timedOut, failureClass, message) => {
      const failure = toConnectionFailure(failures, new Error('Connection error.', { cause }), {
        ...{ who: 'The wire', timedOut, known: { requestId: 'req_1' } },
      })
      expect(failure).toMatchObject({ class: failureClass, retryable: true, requestId: 'req_1' })
      expect(failure.message).toMatch(message)
    },
  )
})

describe('what a client threw', () => {
  const keyWords = /api key/i
  it.each<[unknown, string, boolean, RegExp]>([
    [new SyntaxError('x'), 'protocol', true, /^The stream holds an event that is not valid JSON\. /],
    [new Error('use dangerouslyAllowBrowser'), 'invalid_request', false, /does not run in a browser/],
    [
      new Error('No API key here'),
      'authentication',
      false,
      /^There is no usable key for the call\. Mend the key/,
    ],
    [coded('ECONNRESET'), 'network', true, /^The connection broke \(ECONNRESET\)\. /],
    [coded('ETIMEDOUT'), 'timeout', true, /^The connection broke \(ETIMEDOUT\)\. /],
    [new TypeError('terminated'), 'network', true, /^The connection broke\. /],
    [
      Object.assign(new Error('no api key'), { code: 'EPIPE' }),
      'network',
      true,
      /^The connection broke \(EPIPE\)/,
    ],
    [new RangeError('x'), 'protocol', false, /^The call failed unexpectedly \(RangeError\)\. /],
    [
      Object.assign(new Error('x'), { name: '' }),
      'protocol',
      false,
      /^The call failed unexpectedly \(object\)\. /,
    ],
    ['no api key', 'protocol', false, /^The call failed unexpectedly \(string\)\. /],
  ])('becomes a failure: %s', (error, failureClass, retryable, message) => {
    const failure = toClientFailure(failures, error, keyWords, {})
    expect(failure).toMatchObject({ class: failureClass, retryable })
    expect(failure.message).toMatch(message)
  })

  it.each<[unknown, boolean]>([
    [Object.assign(new Error('x'), { status: 400, headers: undefined, error: undefined }), true],
    [{ status: 400, headers: {}, error: {} }, false],
    ...['status', 'headers', 'error'].map((left): [unknown, boolean] => {
      const { [left]: _, ...fields } = { status: 400, headers: {}, error: {} } as Record<string, unknown>
      return [Object.assign(new Error(left), fields), false]
    }),
  ])('is an answer that the service gave, or not: %s', (error, is) => {
    expect(isApiError(error)).toBe(is)
  })
})

it.each<[number | undefined, string, boolean]>([
  [undefined, 'server', true],
  [400, 'invalid_request', false],
  [401, 'authentication', false],
  [402, 'permission', false],
  [403, 'permission', false],
  [404, 'not_found', false],
  [408, 'timeout', true],
  [409, 'server', true],
  [413, 'context_overflow', false],
  [418, 'invalid_request', false],
  [429, 'rate_limited', true],
  [499, 'network', true],
  [500, 'server', true],
  [501, 'server', false],
  [502, 'server', true],
  [503, 'overloaded', true],
  [504, 'timeout', true],
  [529, 'overloaded', true],
  [599, 'server', true],
])('the status %s is %s, retryable: %s', (status, failureClass, retryable) => {
  expect(judgeStatus(status)).toEqual({ class: failureClass, retryable })
  const own = { class: 'refused', retryable: false } as const
  expect(judgeStatus(status, { [status ?? 0]: own })).toEqual(
    status === undefined ? { class: failureClass, retryable } : own,
  )
})

it('the service may say whether to try again', () => {
  const stated = ['true', 'false', 'TRUE', ''].map((value) => new Headers({ 'x-should-retry': value }))
  expect([undefined, new Headers(), ...stated].map(readStatedRetry)).toEqual([
    ...[undefined, undefined, true, false, undefined, undefined],
  ])
})

it('the id of the request is added where a failure has none', () => {
  const cause = new Error('why')
  const failure = failures.thrownFailure(cause)
  expect(withRequestId(failure, undefined)).toBe(failure)
  const known = withRequestId(failure, 'req_1')
  expect(known).toMatchObject({ ...failure.toFailure(), requestId: 'req_1', cause })
  expect(withRequestId(known, 'req_2')).toBe(known)
})

it('failures of a stream name the request, where it is known', () => {
  for (const requestId of [undefined, 'req_1']) {
    const made = [
      failures.truncatedReply(requestId),
      failures.overlongReply('silent', 50, requestId),
      failures.notAStream('text/html', requestId),
    ]
    expect(made.map((failure) => failure.toFailure())).toMatchObject([
      { class: 'truncated', retryable: true },
      { class: 'timeout', retryable: true, message: expect.stringContaining('The wire for 50 ms') },
      { class: 'protocol', retryable: false, message: expect.stringContaining('of type text/html, not') },
    ])
    expect(made.map((failure) => failure.requestId)).toEqual(made.map(() => requestId))
  }
})

it('a provider’s words become one line of at most 300 characters', () => {
  expect(formatFailureText(' a\n\tb  c ')).toBe('a b c')
  expect([300, 301].map((length) => formatFailureText('x'.repeat(length)))).toEqual([
    'x'.repeat(300),
    `${'x'.repeat(299)}…`,
  ])
  expect(formatFailureText(`${'x'.repeat(298)}👋👋`)).toBe(`${'x'.repeat(298)}�…`)
  expect(formatFailureText('Bearer abc, Basic YWJjZGVmZw==, Basic plan')).toBe(
    'Bearer [struck out] Basic [struck out], Basic plan',
  )
  expect([formatName('x'), formatName(''), formatName(undefined), formatName(null)]).toEqual([
    ' (x)',
    '',
    '',
    '',
  ])
  expect([quoteFailure('Why.'), quoteFailure('Why. So'), quoteFailure(' '), quoteFailure('')]).toEqual([
    ': Why',
    ': Why. So',
    '',
    '',
  ])
})
