import { describe, expect, it } from 'vitest'
import { callsOf, finished, textShown } from './kit/collect.ts'
import { foldResponse } from './kit/openai-fold.ts'
import {
  added,
  args,
  completed,
  counted,
  created,
  functionCall,
  incomplete,
  itemDone,
  message,
  reasoning,
  said,
} from './kit/openai-streams.ts'

type Fields = Readonly<Record<string, unknown>>

const pay = (id: string, call_id: string, more: Fields = {}) => ({
  ...{ type: 'function_call', id, call_id, name: 'pay', arguments: '{"amount":5}', status: 'completed' },
  ...more,
})
const paid = functionCall(2, 'call_2', 'pay', '{"amount":5}')
const thought = { type: 'reasoning', id: 'rs_0', summary: [], encrypted_content: 'E' }
const words = (id: string, text: string) => ({
  ...{ type: 'message', id, role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text, annotations: [] }],
})
const read = (...events: readonly (object | readonly object[])[]) => {
  const { signals, error } = foldResponse(counted(created(), ...events))
  expect(error).toBeUndefined()
  return {
    calls: callsOf(signals).map(({ providerCallId, input }) => [providerCallId, input]),
    parts: finished(signals)!.parts.length,
    text: textShown(signals),
  }
}

describe('what the last event of a response states', () => {
  it.each<readonly [string, readonly Fields[]]>([
    ['at other places', [thought, pay('fc_2', 'call_2')]],
    ['under another id', [thought, pay('fc_9', 'call_2')]],
    ['under other ids altogether', [{ ...thought, id: 'rs_9' }, pay('fc_9', 'call_9')]],
    ['alone', [pay('fc_2', 'call_2')]],
    ['in another order', [pay('fc_2', 'call_2'), thought]],
    ['twice', [pay('fc_2', 'call_2'), pay('fc_2', 'call_2')]],
    ['never', []],
  ])('given a call that streamed and is stated %s, then there is one', (_how, output) => {
    const seen = read(reasoning(0, 'E'), paid, completed({ output }))
    expect(seen).toEqual({ calls: [['call_2', { amount: 5 }]], parts: 2, text: '' })
  })

  it('given a call that did not stream, then it counts beside one that did', () => {
    const other = pay('fc_5', 'call_5', { arguments: '{"amount":7}' })
    const { calls } = read(paid, completed({ output: [other, pay('fc_2', 'call_2')] }))
    expect(calls).toEqual([
      ['call_2', { amount: 5 }],
      ['call_5', { amount: 7 }],
    ])
  })

  it('given two calls that ask the same under their own ids, then both count, once', () => {
    const twice = [pay('fc_0', 'call_0'), pay('fc_1', 'call_1')]
    const streamed = twice.map((item, index) => itemDone(index, item))
    expect(read(streamed, completed({ output: twice })).calls.map(([id]) => id)).toEqual(['call_0', 'call_1'])
    expect(read(completed({ output: twice })).calls.map(([id]) => id)).toEqual(['call_0', 'call_1'])
  })

  it('given text at another place or under another id, then it is shown once', () => {
    const output = [words('msg_7', 'Hello')]
    expect(read(message(3, 'Hel', 'lo'), completed({ output }))).toMatchObject({ text: 'Hello', parts: 1 })
    const more = [words('msg_3', 'Hello'), words('msg_4', ' you')]
    expect(read(message(3, 'Hel', 'lo'), completed({ output: more }))).toMatchObject({
      ...{ text: 'Hello you', parts: 2 },
    })
  })

  it('given an item whose end never came, then it ends as stated, wherever that is', () => {
    const open = added(4, pay('fc_4', 'call_4', { arguments: '', status: 'in_progress' }))
    const output = [pay('fc_4', 'call_4')]
    expect(read(open, args(4, '{"am'), completed({ output })).calls).toEqual([['call_4', { amount: 5 }]])
    const cut = [added(4, { type: 'message', id: 'msg_4', role: 'assistant', content: [] }), said(4, 'Hel')]
    const stated = [words('msg_4', 'Hello')]
    expect(read(cut, incomplete('max_output_tokens', { output: stated }))).toMatchObject({ text: 'Hello' })
  })
})

it('given null as the input of a tool without parameters, then there is nothing in it', () => {
  const asked = (name: string) => pay('fc_0', 'call_0', { name, arguments: 'null' })
  expect(read(completed({ output: [asked('get_time')] })).calls).toEqual([['call_0', {}]])
  const { signals } = foldResponse(counted(created(), completed({ output: [asked('pay')] })))
  expect(callsOf(signals)).toMatchObject([{ malformed: { text: 'null' } }])
})

describe('an item that is told of again under another index', () => {
  it('given a call, then it is one call', () => {
    const again = [added(5, pay('fc_2', 'call_2', { arguments: '' })), itemDone(5, pay('fc_2', 'call_2'))]
    expect(read(paid, again, completed()).calls).toHaveLength(1)
    expect(read(paid, itemDone(5, pay('fc_2', 'call_2')), completed()).calls).toHaveLength(1)
  })

  it('given another input under its ids, then it is another call', () => {
    const other = itemDone(5, pay('fc_2', 'call_2', { arguments: '{"amount":7}' }))
    expect(read(paid, other, completed()).calls).toHaveLength(2)
  })
})
