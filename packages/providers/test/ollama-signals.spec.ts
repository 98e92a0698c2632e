import { describe, expect, it } from 'vitest'
import { createToolNames } from '../src/shared/request.ts'
import { callsOf, deltasOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { call, calls, done, fold, line, rich, settings, text, thinking } from './kit/ollama-lines.ts'

describe('a line', () => {
  it('of thinking, words and calls is all of them, in this order', () => {
    const { signals } = fold([
      line({ thinking: 'hm', content: 'Yes', tool_calls: [call('f', { a: 1 }, 'call_1')] }),
      done(),
    ])
    expect(signals.map((signal) => signal.type)).toEqual([
      'model_started',
      'model_reasoning',
      'model_text',
      'model_tool_request',
      'model_usage',
      'model_finished',
    ])
    expect(finished(signals)).toEqual({
      type: 'model_finished',
      stopReason: 'tool_use',
      rawStopReason: 'stop',
      parts: [
        { type: 'reasoning', text: 'hm', part: 0 },
        { type: 'text', text: 'Yes', part: 1 },
        { type: 'tool_call', providerCallId: 'call_1', name: 'f', input: { a: 1 }, part: 2 },
      ],
    })
  })

  it('may say something and be the last one', () => {
    const { signals } = fold([{ ...done(), message: { role: 'assistant', content: 'All of it.' } }])
    expect(textShown(signals)).toBe('All of it.')
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'All of it.', part: 0 }])
  })

  it('without a message, or with unknown fields, says nothing', () => {
    const { signals } = fold([
      { model: 'm', new_field: [1] },
      line({ content: null, tool_calls: null }),
      done(),
    ])
    expect(signals.map((signal) => signal.type)).toEqual(['model_started', 'model_usage', 'model_finished'])
    expect(signals[0]).toEqual({ type: 'model_started', servedModel: 'm' })
  })

  it('after the last one says nothing', () => {
    const { signals } = fold([text('a'), done(), text('b'), done('length')])
    expect(textShown(signals)).toBe('a')
    expect(signals.filter((signal) => signal.type === 'model_finished')).toHaveLength(1)
  })
})

describe('words', () => {
  it('continue in one part, and begin another after a call or after thinking', () => {
    const { signals } = fold([
      thinking('a'),
      thinking('b'),
      text('c'),
      text('d'),
      calls(call('f')),
      text('e'),
      thinking('g'),
      done(),
    ])
    expect([...deltasOf(signals)]).toEqual([
      [0, 'ab'],
      [1, 'cd'],
      [3, 'e'],
      [4, 'g'],
    ])
    expect(finished(signals)?.parts.map((part) => [part.part, part.type])).toEqual([
      [0, 'reasoning'],
      [1, 'text'],
      [2, 'tool_call'],
      [3, 'text'],
      [4, 'reasoning'],
    ])
  })

  it('that were finished do not change when a signal of them was kept', () => {
    const { signals } = fold(rich)
    expect([...deltasOf(signals).values()]).toEqual([
      'The user greets me — in Seoul it is 서울 weather 🌦️. Two calls.',
      'Grüß dich! Let me look … 👋',
      'One moment.',
    ])
  })
})

describe('a call', () => {
  it('is one more, whatever its index and its id repeat', () => {
    const { signals } = fold([
      calls(call('f', { n: 1 }, 'call_1'), call('f', { n: 2 }, 'call_1')),
      calls(call('f', { n: 3 })),
      done(),
    ])
    expect(callsOf(signals).map(({ providerCallId, input }) => [providerCallId, input])).toEqual([
      ['call_1', { n: 1 }],
      ['call_1', { n: 2 }],
      ['', { n: 3 }],
    ])
  })

  it.each([
    ['nothing', undefined, {}],
    ['null', null, {}],
    ['an empty object', {}, {}],
    ['blank text', ' ', {}],
    ['an object as text', '{"city": "Seoul"}', { city: 'Seoul' }],
  ])('with %s for arguments is a call', (_, given, input) => {
    const [asked] = callsOf(fold([calls(call('f', given)), done()]).signals)
    expect(asked).toEqual({ type: 'tool_call', providerCallId: '', name: 'f', input })
  })

  it.each([
    ['a list', [1], '[1]', 'The input is valid JSON, but not an object.'],
    ['a list as text', '[1]', '[1]', 'The input is valid JSON, but not an object.'],
    ['half an object as text', '{"a":', '{"a":', 'The input is not valid JSON.'],
  ])('with %s for arguments is malformed, and is marked so', (_, given, text, error) => {
    const [asked] = callsOf(fold([calls(call('f', given)), done()]).signals)
    expect(asked).toMatchObject({ input: {}, malformed: { text, error } })
  })

  it('without a name, or without a function, is reported and breaks nothing', () => {
    const { signals } = fold([calls({ id: 'call_1' }, call('')), done()])
    expect(callsOf(signals).map(({ name, input }) => [name, input])).toEqual([
      ['', {}],
      ['', {}],
    ])
  })

  it('bears the name that its tool has here', () => {
    const wireName = createToolNames(['read files'], { maxLength: 64 }).toWire('read files')
    const { signals } = fold([calls(call(wireName, {})), done()], { tools: ['read files'] })
    expect(wireName).toMatch(/^read_files_[0-9a-f]{8}$/)
    expect(callsOf(signals).map(({ name }) => name)).toEqual(['read files'])
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

  it('without a reason is one that we do not know', () => {
    const { signals } = fold([text('a'), line({}, { done: true })])
    expect(finished(signals)).toEqual({
      type: 'model_finished',
      stopReason: 'other',
      parts: [{ type: 'text', text: 'a', part: 0 }],
    })
  })

  it('at the length where prompt and reply fill the context is another than the one that was asked for', () => {
    const at = (eval_count: number) =>
      finished(fold([text('a'), done('length', { prompt_eval_count: 4000, eval_count })]).signals)?.stopReason
    expect(at(95)).toBe('max_tokens')
    expect(at(96)).toBe('context_exceeded')
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

  it('of a prompt that was wholly cached counts the reply alone', () => {
    expect(lastUsage(fold([done('stop', { prompt_eval_count: undefined })]).signals)).toEqual({
      outputTokens: 20,
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

  it('cannot be longer than the context: then the server has a larger one than it was asked for', () => {
    expect(ended(4097).error).toBeUndefined()
    const { signals } = fold([text('a'), done('length', { prompt_eval_count: 5000, eval_count: 10 })], {
      messages: long,
    })
    expect(finished(signals)?.stopReason).toBe('max_tokens')
  })

  it('to half of the context is known by the count that this leaves, beside a text that could not fit', () => {
    expect(ended(2050).error).toMatchObject({ class: 'context_overflow' })
    expect(ended(2049).error).toBeUndefined()
    expect(ended(2051).error).toBeUndefined()
    // A short prompt was not cut to come to that number.
    expect(ended(2050, { messages: [user('word')] }).error).toBeUndefined()
  })

  it('with the leave of the caller is a reply like any other', () => {
    expect(ended(4096, { given: { ...settings, extraBody: { truncate: true } } }).error).toBeUndefined()
  })

  it('is measured against the context that the request asked for', () => {
    expect(ended(8191, { given: { ...settings, parameters: { num_ctx: 8192 } } }).error).toBeUndefined()
    expect(ended(8192, { given: { ...settings, parameters: { num_ctx: 8192 } } }).error).toBeDefined()
    expect(ended(9999, { given: { ...settings, extraBody: { options: {} } } }).error).toBeUndefined()
  })
})
