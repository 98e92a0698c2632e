import { ProviderError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { callsOf, finished, lastUsage } from './kit/collect.ts'
import { foldChat } from './kit/openai-fold.ts'
import { callPieces, choice, chunk, content, finish, role } from './kit/openai-streams.ts'

describe('the end', () => {
  const call = callPieces(0, 'c1', 'a', '{}')
  it.each([
    ['stop', [], 'end'],
    ['stop', call, 'tool_use'],
    ['tool_calls', call, 'tool_use'],
    ['function_call', call, 'tool_use'],
    ['eos_token', [], 'end'],
    ['length', [], 'max_tokens'],
    ['length', call, 'max_tokens'],
    ['model_length', [], 'context_exceeded'],
    ['content_filter', [], 'content_filtered'],
    ['tired', [], 'other'],
    ['toString', [], 'other'],
  ])('%s after %j is %s', (raw, chunks, stopReason) => {
    const { signals } = foldChat([role, content('x'), ...chunks, finish(raw)])
    expect(finished(signals)).toMatchObject({ stopReason, rawStopReason: raw })
  })

  it('that comes twice is the last one, and usage may come with it, after it or not at all', () => {
    const late = foldChat([role, content('x'), choice({ content: '' }, 'stop'), finish('stop')])
    expect(finished(late.signals)?.stopReason).toBe('end')
    expect(lastUsage(late.signals)).toBeUndefined()
    const together = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }], { usage: { prompt_tokens: 1 } })
    expect(lastUsage(foldChat([role, together]).signals)).toEqual({ inputTokens: 1 })
  })

  it('takes usage that comes in every chunk for totals, never for more', () => {
    const reported = (completion_tokens: number) => ({
      ...content('x'),
      usage: { prompt_tokens: 7, completion_tokens },
    })
    const { signals } = foldChat([role, reported(1), reported(2), finish('stop'), reported(3)])
    expect(lastUsage(signals)).toEqual({ inputTokens: 7, outputTokens: 3 })
  })

  it.each([
    ['a usage chunk without choices', { id: 'chatcmpl-1', usage: { prompt_tokens: 4 } }],
    ['choices that are null', { id: 'chatcmpl-1', choices: null, usage: { prompt_tokens: 4 } }],
    ['usage where Groq used to put it', chunk([], { x_groq: { usage: { prompt_tokens: 4 } } })],
  ])('reads %s', (_, last) => {
    expect(lastUsage(foldChat([role, content('x'), finish('stop'), last]).signals)).toEqual({
      inputTokens: 4,
    })
  })

  it('of a cut reply does not report its last call when its input cannot be read, or never began', () => {
    const first = callPieces(0, 'c1', 'a', '{"x":1}')
    for (const text of ['{"y": ', '', ' ']) {
      const { signals } = foldChat([role, ...first, ...callPieces(1, 'c2', 'b', text), finish('length')])
      expect(callsOf(signals).map(({ providerCallId }) => providerCallId)).toEqual(['c1'])
      expect(finished(signals)?.parts).toHaveLength(1)
    }
  })

  it('that never comes is not an end, unless the server is known to leave it out', () => {
    const cut = [role, content('x')]
    expect(foldChat(cut)).toMatchObject({ whole: false })
    const kimi = foldChat([...cut, ...call], { finishReasonOptional: true })
    expect(finished(kimi.signals)).toMatchObject({ stopReason: 'tool_use' })
    expect(finished(kimi.signals)).not.toHaveProperty('rawStopReason')
    expect(foldChat([role], { finishReasonOptional: true })).toMatchObject({ whole: false })
  })

  it.each([
    ['error', 'server'],
    ['insufficient_system_resource', 'overloaded'],
  ])('%s is a reply that the server gave up', (raw, failureClass) => {
    const { error, signals } = foldChat([role, content('x'), finish(raw)])
    expect(error).toMatchObject({ class: failureClass, retryable: true })
    expect(finished(signals)).toBeUndefined()
  })

  it('that an error follows does not count', () => {
    const { error } = foldChat([
      role,
      content('x'),
      finish('length'),
      { error: { code: 502, message: 'Upstream' } },
    ])
    expect(error).toMatchObject({ class: 'server', retryable: true })
  })
})

describe('a stream that two replies share', () => {
  const second = (made: object) => ({ ...made, id: 'chatcmpl-2' })

  it('fails where the second begins, and reports no call', () => {
    const { signals, error } = foldChat([
      ...[role, ...callPieces(0, 'c1', 'a', '{"x":'), second(role)],
      ...[...callPieces(0, 'c2', 'a', '{"x":1}').map(second), second(finish('tool_calls'))],
    ])
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({ class: 'protocol', retryable: true })
    expect(callsOf(signals)).toEqual([])
  })

  it('does not count where a gateway gives every chunk an id of its own', () => {
    const rotated = [role, role, content('x'), finish('stop')].map((one, index) => ({
      ...one,
      id: `id-${index}`,
    }))
    expect(foldChat(rotated)).toMatchObject({ whole: true })
  })
})
