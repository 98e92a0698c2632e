import { describe, expect, it } from 'vitest'
import { createErroneousReplyError, isMissingEnd, toProviderError } from '../src/ai-sdk/failure.ts'
import { cutsReply, requireReason, toStopReason } from '../src/ai-sdk/stream.ts'

const words = (list: string): readonly string[] => list.trim().split(/\s+/)
const named = (name: string, message = 'x', more: object = {}): Error =>
  Object.assign(new Error(message), { name, ...more })
const failureOf = (error: unknown) => toProviderError(error, { now: 0 })

describe('an end of a reply from the AI SDK', () => {
  it.each([
    ['stop', undefined, 'end'],
    ['length', undefined, 'max_tokens'],
    ['content-filter', undefined, 'content_filtered'],
    ['tool-calls', undefined, 'tool_use'],
    ['weary', undefined, 'other'],
    ['toString', 'toString', 'other'],
    ['stop', 'refusal', 'refused'],
    ['stop', 'pause_turn', 'paused'],
    ['other', 'compaction', 'compacted'],
    ['length', 'model_context_window_exceeded', 'context_exceeded'],
  ])('%s (%s) is %s', (unified, raw, reason) => {
    expect(toStopReason(unified, raw, false)).toBe(reason)
    expect(toStopReason(unified, raw, true)).toBe(reason === 'end' ? 'tool_use' : reason)
  })

  it('cuts the reply, or does not', () => {
    const all = words(
      'end tool_use max_tokens context_exceeded refused content_filtered paused other',
    ) as never[]
    expect(all.filter(cutsReply)).toEqual(words('max_tokens context_exceeded refused content_filtered'))
  })

  it('counts where something proves it', () => {
    const proof = { endOfStreamIsEnd: false, endMissing: false, unproven: false }
    expect(requireReason('stop', undefined, proof)).toBe('stop')
    expect(requireReason('other', 'weary', proof)).toBe('other')
    for (const [unified, raw, more] of [
      ['interrupted', undefined, {}],
      ['interrupted', 'x', {}],
      ['other', undefined, {}],
      ['stop', 'x', { endMissing: true }],
      ['error', 'x', { endMissing: true }],
    ] as const) {
      const given = { ...proof, ...more }
      expect(() => requireReason(unified, raw, given)).toThrow('The stream ended before the reply did')
      expect(requireReason(unified, raw, { ...given, endOfStreamIsEnd: true })).toBe('stop')
      expect(() => requireReason(unified, raw, { ...given, endOfStreamIsEnd: true, unproven: true })).toThrow(
        'The stream ended before the reply did',
      )
    }
    expect(() => requireReason('error', 'boom', { ...proof, endOfStreamIsEnd: true })).toThrow('(boom)')
    expect(createErroneousReplyError(undefined)).toMatchObject({ class: 'server', retryable: true })
  })

  it('is missing where the provider says so', () => {
    const message = 'The stream ended without a finish reason.'
    expect(isMissingEnd(named('AI_InvalidResponseDataError', message))).toBe(true)
    expect(isMissingEnd(named('AI_InvalidResponseDataError'))).toBe(false)
    expect(isMissingEnd(named('Error', message))).toBe(false)
    expect(isMissingEnd({ name: 'AI_InvalidResponseDataError', message })).toBe(false)
  })
})

describe('a failure of the AI SDK', () => {
  it.each([
    ['AI_LoadAPIKeyError', 'authentication', false],
    ['AI_LoadSettingError', 'invalid_request', false],
    ['AI_NoSuchModelError', 'not_found', false],
    ['AI_UnsupportedFunctionalityError', 'invalid_request', false],
    ['AI_InvalidPromptError', 'invalid_request', false],
    ['AI_InvalidArgumentError', 'invalid_request', false],
    ['AI_EmptyResponseBodyError', 'truncated', true],
    ['AI_JSONParseError', 'protocol', true],
    ['AI_TypeValidationError', 'protocol', true],
    ['AI_InvalidResponseDataError', 'protocol', true],
    ['toString', 'protocol', false],
  ])('%s is %s, retryable: %s', (name, failureClass, retryable) => {
    expect(failureOf(named(name))).toMatchObject({ class: failureClass, retryable })
  })

  it.each([
    ['context_length_exceeded', 'context_overflow', false],
    ['request_too_large', 'context_overflow', false],
    ['exceed_context_size_error', 'context_overflow', false],
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
    ['internal_error', 'server', true],
  ])('in the stream, %s is %s, retryable: %s', (type, failureClass, retryable) => {
    for (const error of [{ type, message: 'm' }, { error: { code: type, type: 'odd', message: 'm' } }]) {
      const failure = failureOf(error)
      expect(failure).toMatchObject({ class: failureClass, retryable })
      expect(failure.message).toContain(`The reply was broken off (${type}): `)
    }
  })

  it('in the stream is known by a status among its facts, or by its words', () => {
    const classOf = (error: object | string): string => failureOf(error).class
    expect([400, 429, 599].map((code) => classOf({ code, message: 'm' }))).toEqual([
      ...['invalid_request', 'rate_limited', 'server'],
    ])
    expect([399, 600].map((code) => failureOf({ code, message: 'm' }).retryable)).toEqual([true, true])
    expect(classOf({ type: 'invalid_request', message: 'prompt is too long' })).toBe('context_overflow')
    expect(classOf({ type: 'invalid_request', message: 'content filtering policy' })).toBe('content_filtered')
    expect(classOf('some words')).toBe('server')
    expect(classOf({ error: 'some words' })).toBe('server')
    expect(classOf({})).toBe('protocol')
    expect(failureOf({ code: 'odd', type: 'odder', message: 'm' }).message).toContain('(odd)')
  })

  it('of a call is known by its status, or by what broke it', () => {
    const call = (more: object): Error => named('AI_APICallError', 'x', { isRetryable: false, ...more })
    const reset = Object.assign(new Error('x'), { code: 'ECONNRESET' })
    expect(failureOf(call({}))).toMatchObject({ class: 'network', retryable: true })
    expect(failureOf(call({ cause: reset })).message).toContain('could not be reached (ECONNRESET)')
    expect(failureOf(call({ statusCode: 399 }))).toMatchObject({ class: 'protocol', retryable: false })
    expect(failureOf(call({ statusCode: 200, isRetryable: true }))).toMatchObject({
      ...{ class: 'protocol', retryable: true },
    })
    expect(failureOf(call({ statusCode: 200, cause: reset }))).toMatchObject({ class: 'network' })
    const refused = failureOf(call({ statusCode: 400, responseBody: 'no json' }))
    expect(refused).toMatchObject({ class: 'invalid_request', status: 400 })
    expect([refused.requestId, refused.retryAfterMs]).toEqual([undefined, undefined])
    const reported = { 'x-request-id': 'b', 'retry-after': '2' }
    expect(failureOf(call({ statusCode: 429, responseHeaders: reported }))).toMatchObject({
      ...{ requestId: 'b', retryAfterMs: 2000 },
    })
    const both = { 'request-id': 'a', 'x-request-id': 'b' }
    expect(failureOf(call({ statusCode: 429, responseHeaders: both })).requestId).toBe('a')
  })

  it('stays as it is where it is one already', () => {
    const failure = createErroneousReplyError('x')
    expect(failureOf(failure)).toBe(failure)
  })
})
