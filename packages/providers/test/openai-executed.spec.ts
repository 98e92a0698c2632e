import { describe, expect, it } from 'vitest'
import { finished } from './kit/collect.ts'
import { foldResponse } from './kit/openai-fold.ts'
import { added, completed, created, itemDone } from './kit/openai-streams.ts'

function executed(item: Readonly<Record<string, unknown>>): unknown {
  const { signals } = foldResponse([created(), added(0, item), itemDone(0, item), completed()])
  return finished(signals)!.parts.map((part) => (part.type === 'provider' ? part.executed : part.type))[0]
}

describe('a call that OpenAI ran itself', () => {
  const done = { status: 'completed' }
  it.each([
    [
      { type: 'mcp_call', id: 'mcp_1', server_label: 'wiki', name: 'ask', arguments: '{"q":1}', error: null },
      { id: 'mcp_1', name: 'wiki/ask', input: { q: 1 }, outcome: 'success' },
    ],
    [
      {
        type: 'mcp_call',
        id: 'mcp_1',
        server_label: 'wiki',
        name: 'ask',
        arguments: '{',
        error: 'gone',
        ...done,
      },
      { id: 'mcp_1', name: 'wiki/ask', input: { text: '{' }, outcome: 'failed' },
    ],
    [
      { type: 'code_interpreter_call', id: 'ci_1', code: '1+1', container_id: 'c', outputs: null, ...done },
      { id: 'ci_1', name: 'code_interpreter', input: { code: '1+1' }, outcome: 'success' },
    ],
    [
      { type: 'file_search_call', id: 'fs_1', queries: ['a'], results: null, status: 'failed' },
      { id: 'fs_1', name: 'file_search', input: { queries: ['a'] }, outcome: 'failed' },
    ],
    [
      {
        ...{
          type: 'image_generation_call',
          id: 'ig_1',
          size: '1024x1024',
          action: 'generate',
          result: 'aGk=',
        },
        ...{
          output: 'x',
          outputs: [1],
          results: [2],
          error: null,
          approval_request_id: 'a',
          container_id: 'c',
        },
        ...done,
      },
      { id: 'ig_1', name: 'image_generation', input: { size: '1024x1024' }, outcome: 'success' },
    ],
    // Who called, and from which set of tools, is not part of what was asked.
    [
      {
        ...{ type: 'file_search_call', id: 'fs_1', queries: ['a'], namespace: 'crm', ...done },
        caller: { type: 'program', id: 'prog_1' },
      },
      { id: 'fs_1', name: 'file_search', input: { queries: ['a'] }, outcome: 'success' },
    ],
  ])('%o is shown as %o', (item, shown) => {
    expect(executed(item)).toEqual(shown)
  })

  it.each([
    ['is of an unknown kind', { type: 'telepathy_call', id: 'tp_1', ...done }],
    ['is not a call', { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }],
  ])('does not count that %s', (_, item) => {
    expect(executed(item)).toBeUndefined()
  })
})
