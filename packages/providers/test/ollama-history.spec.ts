import { describe, expect, it } from 'vitest'
import type { WireMessage } from '../src/ollama/client.ts'
import { alternateTurns } from '../src/ollama/request.ts'
import { toToolSchema } from '../src/ollama/tools.ts'

const user = (content: string, ...images: readonly string[]): WireMessage => ({
  ...{ role: 'user', content },
  ...(images.length > 0 && { images }),
})
const call = (id: string) => ({ id, function: { name: 'f', arguments: {} } })
const opening = user('(The conversation begins here.)')

describe('a history for Ollama', () => {
  it.each<[string, readonly WireMessage[], readonly WireMessage[]]>([
    ['nothing', [], [opening]],
    ['two of the user, with pictures', [user('a', '1'), user('b', '2')], [user('a\n\nb', '1', '2')]],
    ['pictures in the first alone', [user('a', '1'), user('')], [user('a', '1')]],
    ['pictures in the second alone', [user(''), user('b', '2')], [user('b', '2')]],
    ['no pictures', [user('a'), user('b')], [user('a\n\nb')]],
    [
      'two of the assistant',
      [
        user('a'),
        { role: 'assistant', content: 'b', thinking: 'x', tool_calls: [call('1')] },
        { role: 'assistant', content: '', thinking: 'y', tool_calls: [call('2')] },
        { role: 'assistant', content: 'c' },
      ],
      [
        user('a'),
        {
          ...{ role: 'assistant', content: 'b\n\nc', thinking: 'x\n\ny' },
          tool_calls: ['1', '2'].map((id) => ({ id, function: { name: 'f', arguments: {} } })),
        },
      ],
    ],
    [
      'results of tools, which stay apart',
      [
        user('a'),
        ...['ours', 'other'].map((id): WireMessage => ({
          ...{ role: 'tool', content: 'x', tool_name: 'f', tool_call_id: id },
        })),
      ],
      [
        user('a'),
        ...['ours', 'other'].map((id): WireMessage => ({
          ...{ role: 'tool', content: 'x', tool_name: 'f', tool_call_id: id },
        })),
      ],
    ],
    [
      'the assistant first',
      [{ role: 'assistant', content: 'b' }],
      [opening, { role: 'assistant', content: 'b' }],
    ],
  ])('has turns that alternate: %s', (_, messages, expected) => {
    expect(alternateTurns(messages)).toEqual(expected)
  })
})

describe('a reference in a schema for Ollama', () => {
  it.each(['#/$defs/lost', '#/$defs/__proto__', '#/$defs/toString', '#/$defs/text/type', 'other.json', '#x'])(
    'that leads to nothing becomes a description in words: %s',
    ($ref) => {
      const given = { properties: { a: { $ref } }, $defs: { text: { type: 'string' } } }
      const { schema, inWords } = toToolSchema(given)
      expect(schema['properties']).toEqual({ a: { description: `A ${$ref.split('/').at(-1)}, as above.` } })
      expect(inWords).toEqual(['$ref'])
    },
  )
})
