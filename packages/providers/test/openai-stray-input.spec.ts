import { describe, expect, it } from 'vitest'
import { callsOf, textShown } from './kit/collect.ts'
import { foldResponse } from './kit/openai-fold.ts'
import { added, args, completed, created, itemDone, said } from './kit/openai-streams.ts'

describe('a reply of OpenAI', () => {
  it('shows no input of pieces that come for a message, for a search of the provider, or without a text', () => {
    const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'a' }
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'message', id: 'msg_0', content: [] }), args(0, '{"lost":1}')],
      ...[said(0, 'Hello'), args(0, '{"lost":2}')],
      ...[added(1, item), args(1, ''), { ...args(1, ''), delta: 7 }, args(1, '{"x":1}')],
      ...[itemDone(1, { ...item, arguments: '{"x":1}' })],
      ...[added(2, { type: 'web_search_call', id: 'ws_2' }), args(2, '{"lost":3}'), completed()],
    ])
    expect(signals.filter(({ type }) => type === 'model_tool_input')).toEqual([
      expect.objectContaining({ text: '{"x":1}' }),
    ])
    expect(textShown(signals)).toBe('Hello')
    expect(callsOf(signals).map((call) => call.input)).toEqual([{ x: 1 }])
  })
})
