import { describe, expect, it } from 'vitest'
import { callsOf, finished, lastUsage } from './kit/collect.ts'
import { foldChat } from './kit/openai-fold.ts'
import { callPieces, chunk, content, finish, role } from './kit/openai-streams.ts'

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
})

describe('a stream that two replies share', () => {
  it('does not count where a gateway gives every chunk an id of its own', () => {
    const rotated = [role, role, content('x'), finish('stop')].map((one, index) => ({
      ...one,
      id: `id-${index}`,
    }))
    expect(foldChat(rotated)).toMatchObject({ whole: true })
  })
})
