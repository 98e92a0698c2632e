import type { Message } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { writeFound, readFoundNames } from '../src/toolkit/searchable-tools.ts'

/** A message with the results of tools: each a name, what it says, and how it ended. */
const results = (...given: readonly (readonly [name: string, text: string, outcome?: string])[]): Message =>
  ({
    role: 'tool',
    results: given.map(([name, text, outcome = 'success']) => ({
      ...{ callId: 'c', name, outcome, content: [{ type: 'text', text }] },
    })),
  }) as unknown as Message
const finding = (...names: readonly string[]) =>
  JSON.stringify(writeFound(names.map((name) => ({ name, description: '' }))))

describe('the names that a conversation used or found', () => {
  it.each<[string, readonly Message[], readonly string[]]>([
    ['none where no tool was called', [{ role: 'user', parts: [] } as unknown as Message], []],
    ['the tools that ran', [results(['a', 'x'], ['b', 'x', 'failed'])], ['a', 'b']],
    ['no tool that there is not', [results(['a', 'x', 'unknown_tool'])], []],
    ['the search and what it found', [results(['find', finding('a', 'b')])], ['find', 'a', 'b']],
    ['the latest first', [results(['a', 'x']), results(['b', 'x'])], ['b', 'a']],
    [
      'of several searches first all that came first',
      [results(['find', finding('a')], ['find', finding('b', 'c', 'd')], ['find', finding('e', 'f')])],
      ['find', 'find', 'find', 'a', 'b', 'e', 'c', 'f', 'd'],
    ],
    ['nothing that another tool says it found', [results(['a', finding('b')])], ['a']],
    [
      'nothing of a result that is not a finding',
      [results(['find', '{}'], ['find', 'none'])],
      ['find', 'find'],
    ],
  ])('are %s', (_what, messages, names) => {
    expect([...readFoundNames(messages, 'find')]).toEqual(names)
  })
})

describe('the answer of a search', () => {
  it('holds the first 300 characters of a description', () => {
    const description = 'x'.repeat(300)
    expect(writeFound([{ name: 'a', description }])).toMatchObject({ found: [{ name: 'a', description }] })
    expect(writeFound([{ name: 'a', description: `${description}y` }])).toMatchObject({
      found: [{ description: expect.stringMatching(/^x+ … \(cut\)$/) }],
    })
  })
})
