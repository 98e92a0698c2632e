import { ToolError } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { describeFailure } from '../../src/built-in/http-fetch/exchange.ts'

const coded = (code: unknown, cause?: unknown) => Object.assign(new Error('secret', { cause }), { code })
/** An error within so many others. */
const within = (depth: number, error: Error): Error =>
  depth === 0 ? error : within(depth - 1, new TypeError('fetch failed', { cause: error }))
const cyclic = new Error('secret')
cyclic.cause = cyclic

describe('a failed request', () => {
  it.each<[unknown, string]>([
    [coded('ECONNREFUSED'), 'the server refused the connection (ECONNREFUSED)'],
    [coded('ECONNRESET'), 'the server closed the connection (ECONNRESET)'],
    [coded('EAI_AGAIN'), 'the name of the host cannot be looked up now (EAI_AGAIN)'],
    [coded('EHOSTUNREACH'), 'there is no way to the host (EHOSTUNREACH)'],
    [coded('ENETUNREACH'), 'there is no way to the host (ENETUNREACH)'],
    [coded('ENOTFOUND'), 'there is no host of that name (ENOTFOUND)'],
    [coded('ETIMEDOUT'), 'the server did not answer the connection (ETIMEDOUT)'],
    [coded('UND_ERR_CONNECT_TIMEOUT'), 'the server did not answer the connection (UND_ERR_CONNECT_TIMEOUT)'],
    [coded('UND_ERR_HEADERS_OVERFLOW'), 'the headers of the answer are too large (UND_ERR_HEADERS_OVERFLOW)'],
    [coded('UND_ERR_SOCKET'), 'the server closed the connection (UND_ERR_SOCKET)'],
    ...['CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_X', 'ERR_SSL_X'].map(
      (code): [unknown, string] => [coded(code), `the connection cannot be trusted (${code})`],
    ),
    [coded('EODD'), 'the request failed (EODD)'],
    [coded('a secret'), 'the request failed'],
    [coded(7), 'the request failed'],
    [coded('a secret', coded('ECONNRESET')), 'the server closed the connection (ECONNRESET)'],
    [coded('ENOTFOUND', coded('ECONNRESET')), 'there is no host of that name (ENOTFOUND)'],
    [within(7, coded('ECONNRESET')), 'the server closed the connection (ECONNRESET)'],
    [within(8, coded('ECONNRESET')), 'the request failed'],
    [
      new AggregateError([coded('ECONNREFUSED'), coded('ENOTFOUND')]),
      'the server refused the connection (ECONNREFUSED)',
    ],
    [
      new AggregateError([], 'secret', { cause: coded('ENOTFOUND') }),
      'there is no host of that name (ENOTFOUND)',
    ],
    [cyclic, 'the request failed'],
    ['a secret', 'the request failed'],
    [undefined, 'the request failed'],
  ])('of %s is named by its code, and by nothing that a library says', (thrown, reason) => {
    expect(describeFailure(thrown, (text) => text)).toMatchObject({
      ...{ name: 'ToolError', message: `There is no answer: ${reason}.`, outcome: 'failed' },
    })
  })

  it('of a port that no client connects to names the port', () => {
    expect(describeFailure(within(1, new Error('bad port')), (text) => text).message).toMatch(
      /^The port of that URL/,
    )
  })

  it('that a rule refused is named in the outermost words of ours, with its outcome, and masked', () => {
    const inner = new ToolError('inner')
    const refused = Object.assign(new ToolError('No entry for swordfish', { outcome: 'timed_out' }), {
      cause: inner,
    })
    const failure = describeFailure(within(1, refused), (text) => text.replace('swordfish', '***'))
    expect(failure).toBeInstanceOf(ToolError)
    expect(failure).toMatchObject({ message: 'No entry for ***', outcome: 'timed_out' })
  })
})
