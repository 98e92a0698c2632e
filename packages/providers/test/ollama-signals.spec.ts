import { describe, expect, it } from 'vitest'
import { callsOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { call, calls, done, fold, settings, text } from './kit/ollama-lines.ts'

describe('a line', () => {
  it('after the last one says nothing', () => {
    const { signals } = fold([text('a'), done(), text('b'), done('length')])
    expect(textShown(signals)).toBe('a')
    expect(signals.filter((signal) => signal.type === 'model_finished')).toHaveLength(1)
  })
})

describe('a call', () => {
  it('without a name, or without a function, is reported and breaks nothing', () => {
    const { signals } = fold([calls({ id: 'call_1' }, call('')), done()])
    expect(callsOf(signals).map(({ name, input }) => [name, input])).toEqual([
      ['', {}],
      ['', {}],
    ])
  })
})

describe('the end', () => {
  it.each([
    ['stop', [], 'end'],
    ['stop', [calls(call('f'))], 'tool_use'],
    ['length', [], 'max_tokens'],
    ['length', [calls(call('f'))], 'max_tokens'],
    ['load', [calls(call('f'))], 'other'],
    ['weary', [calls(call('f'))], 'other'],
  ])('%s after %j is %s, and the word itself is kept', (raw, before, stopReason) => {
    expect(finished(fold([...before, done(raw)]).signals)).toMatchObject({ stopReason, rawStopReason: raw })
  })

  it('counts what the last line says, and keeps its numbers', () => {
    const { signals } = fold([text('a'), done('stop', { prompt_eval_count: 169, eval_count: 55 })])
    expect(lastUsage(signals)).toEqual({ inputTokens: 169, outputTokens: 55 })
    expect(signals.find((signal) => signal.type === 'model_usage')?.raw).toEqual({
      total_duration: 2_000_000,
      prompt_eval_count: 169,
      eval_count: 55,
    })
  })
})

describe('a prompt that the server cut', () => {
  const long = [user('word '.repeat(4096))]
  const ended = (prompt_eval_count: number, more = {}) =>
    fold([text('a'), done('stop', { prompt_eval_count })], { messages: long, ...more })

  it('fails the call when the prompt is all of the context, to the token', () => {
    const { signals, error } = ended(4096)
    expect(error).toMatchObject({ class: 'context_overflow', retryable: false })
    expect(String(error)).toContain('4096 tokens')
    expect(finished(signals)).toBeUndefined()
    // It was paid for all the same.
    expect(lastUsage(signals)).toEqual({ inputTokens: 4096, outputTokens: 20 })
  })

  it('is measured against the context that the request asked for', () => {
    expect(ended(8191, { given: { ...settings, parameters: { num_ctx: 8192 } } }).error).toBeUndefined()
    expect(ended(8192, { given: { ...settings, parameters: { num_ctx: 8192 } } }).error).toBeDefined()
    expect(ended(9999, { given: { ...settings, extraBody: { options: {} } } }).error).toBeUndefined()
  })
})
