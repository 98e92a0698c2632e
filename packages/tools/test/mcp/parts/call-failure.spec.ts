// What the errors of the client library mean for a call, and what a model reads of each.
import * as sdk from '@modelcontextprotocol/client'
import { describe, expect, it } from 'vitest'
import {
  readCallFailure,
  type CallFailure,
  createFailureError,
  createUnreachable,
} from '../../../src/mcp/deadline.ts'
import type { NamedServer } from '../../../src/mcp/client.ts'
import { findKnownSecrets } from '../../../src/mcp/secrets.ts'

const meaning = (error: unknown): CallFailure => readCallFailure(error, { sdk })
const http = (status: number, message = 'so it is'): CallFailure =>
  meaning(
    new sdk.SdkHttpError(sdk.SdkErrorCode.ClientHttpNotImplemented, message, { status, statusText: '' }),
  )
const coded = (code: unknown, cause?: unknown): Error =>
  Object.assign(new Error('fetch failed', { cause }), { code })
/** An error that has others below it, and at the end one of this code. */
const nested = (levels: number, code: string): Error =>
  levels === 0 ? coded(code) : new Error('fetch failed', { cause: nested(levels - 1, code) })

const happened = 'What was asked for may have happened all the same: find out before asking for it again.'
const refused = (status: number) => ({
  kind: 'answered',
  text: `The server refused the call (HTTP ${status}): it wants another authorization. Nothing was run.`,
})

describe('a call that failed', () => {
  it.each([
    [400, { kind: 'answered', text: 'The server answered with HTTP 400: so it is' }],
    [401, refused(401)],
    [402, { kind: 'answered', text: 'The server answered with HTTP 402: so it is' }],
    [403, refused(403)],
    [404, { kind: 'unknown_session' }],
    [499, { kind: 'answered', text: 'The server answered with HTTP 499: so it is' }],
    [500, { kind: 'answered', text: `The server answered with HTTP 500: so it is ${happened}` }],
    [502, { kind: 'in_doubt' }],
    [503, { kind: 'answered', text: 'The server answered with HTTP 503: so it is' }],
    [504, { kind: 'in_doubt' }],
    [505, { kind: 'answered', text: `The server answered with HTTP 505: so it is ${happened}` }],
  ])('with HTTP %i', (status, failure) => {
    expect(http(status)).toEqual(failure)
  })

  it('with words about its session is one of an unknown session with HTTP 400 alone', () => {
    expect(http(400, 'Session not found')).toEqual({ kind: 'unknown_session' })
    expect(http(402, 'Session not found')).toMatchObject({ kind: 'answered' })
  })

  it.each<[string, unknown, CallFailure]>([
    ['no authorization', new sdk.UnauthorizedError('no'), { kind: 'unauthorized' }],
    [
      'an error of the protocol',
      new sdk.ProtocolError(-32_602, 'no such tool'),
      { kind: 'answered', text: 'The server answered with an error: no such tool' },
    ],
    ['an answer that was lost', new sdk.ProtocolError(-32_098, 'lost'), { kind: 'in_doubt' }],
    ['no connection', new sdk.SdkError(sdk.SdkErrorCode.NotConnected, 'no'), { kind: 'unsent' }],
    [
      'a connection that ended',
      new sdk.SdkError(sdk.SdkErrorCode.ConnectionClosed, 'no'),
      { kind: 'in_doubt' },
    ],
    [
      'an answer that is none',
      new sdk.SdkError(sdk.SdkErrorCode.InvalidResult, 'it is a list'),
      { kind: 'answered', text: `The call failed: it is a list. ${happened}` },
    ],
  ])('with %s', (_what, error, failure) => {
    expect(meaning(error)).toEqual(failure)
  })

  it.each([
    ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
    ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('with %s was never sent', (code) => {
    expect(meaning(coded(code))).toEqual({ kind: 'unsent' })
  })

  it.each<[string, unknown, CallFailure['kind']]>([
    ['another code', coded('ECONNRESET'), 'in_doubt'],
    ['no code', new Error('fetch failed'), 'in_doubt'],
    ['no error', 'ECONNREFUSED', 'in_doubt'],
    ['a cause four errors below', nested(4, 'ECONNREFUSED'), 'unsent'],
    ['a cause five errors below', nested(5, 'ECONNREFUSED'), 'in_doubt'],
    ['each address refused', new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]), 'unsent'],
    ['one address refused', new AggregateError([coded('ECONNREFUSED'), coded('ECONNRESET')]), 'in_doubt'],
    ['the one address refused', new AggregateError([coded('ECONNREFUSED')]), 'unsent'],
    ['no address', new AggregateError([]), 'in_doubt'],
  ])('with %s below it', (_what, error, kind) => {
    expect(meaning(error)).toEqual({ kind })
  })
})

describe('what a model reads of a failed call', () => {
  const secret = 'swordfish-0123456789'
  const options = { command: 'x', secrets: [secret] }
  const server: NamedServer = { name: 'shop', options, secrets: findKnownSecrets(options) }
  const read = (failure: CallFailure, faults: readonly string[] = []) => {
    const { message, outcome } = createFailureError(failure, server, faults)
    return { message, outcome }
  }

  it('is what the server said, without secrets, cut where it is long', () => {
    expect(read({ kind: 'answered', text: `no ${secret}` })).toEqual({
      ...{ message: 'no [secret]', outcome: 'failed' },
    })
    expect(read({ kind: 'answered', text: '-'.repeat(8_000) }).message).toHaveLength(8_000)
    expect(read({ kind: 'answered', text: '-'.repeat(8_001) }).message).toMatch(/^-+ … \(cut\)$/)
  })

  it('says whether anything may have happened', () => {
    expect(read({ kind: 'unauthorized' }).message).toBe(refused(401).text)
    expect(read({ kind: 'in_doubt' })).toEqual({
      message:
        'The connection to the MCP server shop was lost during this call. It may have taken effect: find out before you ask for it again.',
      outcome: 'interrupted',
    })
    const gone = (why: string) =>
      `The MCP server shop cannot be reached now${why}. Nothing was run. Continue without it, or try again later.`
    expect(read({ kind: 'unsent' })).toEqual({ message: gone(''), outcome: 'failed' })
    expect(read({ kind: 'unknown_session' }, ['it ended\nsoon', 'more']).message).toBe(gone(' (it ended)'))
    expect(createUnreachable('shop', []).message).toBe(gone(''))
  })
})
