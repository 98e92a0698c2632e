import { ProviderError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { callsOf, finished, textShown } from './kit/collect.ts'
import { foldResponse } from './kit/openai-fold.ts'
import {
  added,
  completed,
  counted,
  created,
  failedResponse,
  functionCall,
  incomplete,
  itemDone,
  message,
  reasoning,
  said,
} from './kit/openai-streams.ts'

it.each([
  ['a whole reply', (output: unknown) => completed({ output })],
  ['a reply that was cut', (output: unknown) => incomplete('max_output_tokens', { output })],
])(
  '%s says nothing twice where its end states items that ended, under other ids, or no items',
  (_, ending) => {
    const stated = { type: 'message', id: 'msg_other', content: [{ type: 'output_text', text: 'and so' }] }
    const { signals, error } = foldResponse([created(), ...message(0, 'and so'), ending([stated, null, 'x'])])
    expect([error, textShown(signals)]).toEqual([undefined, 'and so'])
    expect(finished(signals)?.parts).toMatchObject([{ type: 'text', text: 'and so', part: 0 }])
  },
)

describe('a reply that was cut', () => {
  it('does not report a call that says of itself that it is incomplete, though it can be read', () => {
    const item = { type: 'function_call', id: 'fc_0', call_id: 'call_1', name: 'f', arguments: '{}' }
    const { signals } = foldResponse([
      ...[created(), added(0, item), itemDone(0, { ...item, status: 'incomplete' })],
      incomplete('max_output_tokens'),
    ])
    expect(callsOf(signals)).toEqual([])
    expect(finished(signals)?.parts).toEqual([])
  })

  it.each(['max_output_tokens', 'content_filter', 'steered'])(
    'by %s does not report its last call when its input cannot be read, though the item ended',
    (reason) => {
      const { signals } = foldResponse([
        ...[created(), ...functionCall(0, 'call_1', 'write', '{"file":"a"}')],
        ...[...functionCall(1, 'call_2', 'write', '{"file": "b.t'), incomplete(reason)],
      ])
      expect(callsOf(signals).map((call) => call.providerCallId)).toEqual(['call_1'])
      expect(finished(signals)?.parts).toHaveLength(1)
    },
  )

  it('reports a malformed call before an item of which the server tells only the end', () => {
    const { signals } = foldResponse([
      ...[created(), ...functionCall(0, 'call_1', 'write', '{"file": ')],
      ...message(1, 'and so').slice(-1),
      incomplete('max_output_tokens'),
    ])
    expect(signals.map(({ type }) => type)).toEqual([
      ...['model_started', 'model_tool_input', 'model_tool_request', 'model_text'],
      ...['model_usage', 'model_finished'],
    ])
  })

  it.each([
    ['drops a malformed call', incomplete('max_output_tokens'), ['call_2']],
    ['reports a malformed call at the end of a whole reply', completed(), ['call_2', 'call_1']],
  ])('%s that ended while the next one was open', (_, ending, reported) => {
    const [first, second] = [
      functionCall(0, 'call_1', 'write', '{"file": '),
      functionCall(1, 'call_2', 'write', '{"file":"a"}'),
    ]
    const { signals } = foldResponse([
      ...[created(), ...first.slice(0, -1), ...second.slice(0, -1), ...first.slice(-1), ...second.slice(-1)],
      ending,
    ])
    expect(callsOf(signals).map((call) => call.providerCallId)).toEqual(reported)
  })

  it('keeps half a text, and neither half an item of the vendor nor proof of half a thought', () => {
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'reasoning', id: 'rs_0', encrypted_content: 'aGFsZg==', summary: [] })],
      ...[added(1, { type: 'web_search_call', id: 'ws_1' }), added(2, { type: 'message', id: 'msg_2' })],
      ...[said(2, 'I wi'), incomplete('max_output_tokens')],
    ])
    expect(finished(signals)?.parts).toEqual([
      { type: 'reasoning', text: '', part: 0 },
      { type: 'text', text: 'I wi', part: 2 },
    ])
  })

  it.each([
    ['max_output_tokens', 'max_tokens'],
    ['content_filter', 'content_filtered'],
    ['max_messages', 'other'],
    ['toString', 'other'],
  ])('by %s stops as %s, and the word itself is kept', (reason, stopReason) => {
    const { signals } = foldResponse([created(), ...message(0, 'x'), incomplete(reason)])
    expect(finished(signals)).toMatchObject({ stopReason, rawStopReason: reason })
  })

  it('for a reason that is not told stops as other', () => {
    const { signals } = foldResponse([created(), ...message(0, 'x'), incomplete(undefined)])
    expect(finished(signals)).toMatchObject({ stopReason: 'other', rawStopReason: 'incomplete' })
  })
})

describe('the end', () => {
  it('is final: what follows it says nothing', () => {
    const { signals } = foldResponse([
      ...[created(), completed(), ...message(0, 'late'), created({ id: 'resp_2' }), completed()],
    ])
    expect(signals.at(-1)?.type).toBe('model_finished')
    expect(textShown(signals)).toBe('')
  })
})

describe('a response that failed', () => {
  it.each([
    ['server_error', 'The server had an error', 'server', true],
    ['rate_limit_exceeded', 'Slow down', 'rate_limited', true],
    ['vector_store_timeout', 'Too slow', 'timeout', true],
    ['insufficient_quota', 'You have no money', 'rate_limited', false],
    ['invalid_prompt', 'Your prompt was flagged', 'content_filtered', false],
    ['bio_policy', 'No', 'content_filtered', false],
    ['context_length_exceeded', 'Too long', 'context_overflow', false],
    ['some_new_error', 'What is this?', 'server', true],
  ])('by %s "%s" is %s, retryable: %s', (code, words, failureClass, retryable) => {
    const { error } = foldResponse([created(), failedResponse(code, words)])
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({ class: failureClass, retryable })
    expect((error as ProviderError).message).toContain(`(${code}): ${words.replace(/\.$/, '')}`)
  })

  it.each([
    ['nested', { error: { type: 'server_error', code: 'server_error', message: 'Oops' } }],
    ['flat', { code: 'server_error', message: 'Oops', param: null }],
  ])('may say so in an error event, %s', (_, fields) => {
    const { error } = foldResponse([created(), { type: 'error', ...fields }])
    expect(error).toMatchObject({ class: 'server', retryable: true })
    expect((error as ProviderError).message).toContain('(server_error): Oops')
  })
})

describe('a stream that two replies share', () => {
  it('continues when a gateway gives the response another id in every event', () => {
    const events = [created(), ...message(0, 'ok'), completed({ id: 'resp_9' })]
    expect(
      foldResponse([events[0]!, { type: 'response.in_progress', response: { id: 'x' } }, ...events.slice(1)]),
    ).toMatchObject({
      whole: true,
    })
  })

  it.each([
    [
      'an item begins again, as another thing',
      [added(0, { type: 'message' }), added(0, { type: 'function_call' })],
    ],
    ['an item continues after its end', [...message(0, 'x'), said(0, 'y')]],
    ['an item begins without a type', [added(0, {})]],
    ['an item ends without a type', [itemDone(0, {})]],
  ])('fails where %s', (_, events) => {
    expect(foldResponse([created(), ...events, completed()]).error).toMatchObject({
      ...{ class: 'protocol', retryable: true },
    })
  })
})

it('a reply whose events restart their count, without a start, is never taken for whole', () => {
  const events = counted(created(), reasoning(0, 'ZW5j'), message(1, 'One'))
  const again = counted(message(2, 'Two'), completed())
  expect(foldResponse([...events, ...again])).toMatchObject({ whole: false })
})
