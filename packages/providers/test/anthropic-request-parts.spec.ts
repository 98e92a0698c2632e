// The parts of a request to Anthropic, one at a time: marks of the prompt cache, betas, and the halves of its own tools.
import { describe, expect, it } from 'vitest'
import { listBetas, markCache } from '../src/anthropic/request.ts'
import { readCaller, readServerHalf } from '../src/anthropic/messages.ts'

const text = (words: string) => ({ type: 'text', text: words })
const user = (...words: string[]) => ({ role: 'user' as const, content: words.map(text) })
const assistant = { role: 'assistant' as const, content: [text('a')] }

describe('the marks of the prompt cache', () => {
  const marks = (request: object): string[] =>
    JSON.stringify(markCache(request as never, '5m'))
      .split('"cache_control"')
      .slice(0, -1)
      .map((before) => /.*"(?:text|name)":"([^"]*)"/.exec(before)?.[1] ?? '')
  const tool = (name: string, more: object = {}) => ({ name, ...more })
  const own = { cache_control: { type: 'ephemeral' } }
  const messages = [user('u1'), assistant, user('u2', 'u3'), assistant, user('u4')]

  it.each<readonly [string, object, readonly string[]]>([
    ['the instructions and the last two messages', { system: [text('s1'), text('s2')] }, ['s2', 'u3', 'u4']],
    ['the last tool, without instructions', { tools: [tool('t1'), tool('t2')] }, ['t2', 'u3', 'u4']],
    ['no tool beside instructions', { system: [text('s')], tools: [tool('t')] }, ['s', 'u3', 'u4']],
    [
      'the last tool that is not loaded later',
      { tools: [tool('t1', { defer_loading: false }), tool('t2', { defer_loading: true })] },
      ['t1', 'u3', 'u4'],
    ],
    [
      'messages alone, where each tool is loaded later',
      { tools: [tool('t', { defer_loading: true })] },
      ['u3', 'u4'],
    ],
    ['messages alone, without anything before them', {}, ['u3', 'u4']],
  ])('are on %s', (_where, request, marked) => {
    expect(marks({ ...request, messages })).toEqual(marked)
  })

  it('are four at most, those of the caller counted, and a marked tool gets no second one', () => {
    const marked = (count: number) => Array.from({ length: count }, (_, at) => tool(`t${at}`, own))
    const counts = [0, 1, 2, 3, 4, 5].map((count) => {
      const request = { tools: [...marked(count), tool('plain')], system: [text('s')], messages }
      return marks(request).length
    })
    expect(counts).toEqual([3, 4, 4, 4, 4, 5])
    const last = { tools: [tool('plain'), ...marked(1)], messages }
    expect(marks(last)).toEqual(['t0', 'u3', 'u4'])
    expect(marks({ tools: [...marked(3), tool('plain')], messages })).toHaveLength(4)
  })

  it('are on each message of the user where there are two or fewer, and say how long', () => {
    expect(marks({ messages: [user('u1')] })).toEqual(['u1'])
    expect(marks({ messages: [user('u1'), assistant] })).toEqual(['u1'])
    expect(marks({ messages: [] })).toEqual([])
    const request = { messages: [user('u1')] }
    expect(markCache(request as never, 'off')).toBe(request)
    expect(markCache(request as never, '5m')).toEqual({
      messages: [{ role: 'user', content: [{ ...text('u1'), cache_control: { type: 'ephemeral' } }] }],
    })
    expect(markCache(request as never, '1h')).toEqual({
      messages: [
        { role: 'user', content: [{ ...text('u1'), cache_control: { type: 'ephemeral', ttl: '1h' } }] },
      ],
    })
  })
})

describe('the betas of a request', () => {
  const betas = (body: object, wanted: readonly string[] = []) =>
    listBetas({ messages: [], ...body } as never, wanted)
  const reply = (...content: object[]) => ({ messages: [{ role: 'assistant', content }] })
  const management = 'context-management-2025-06-27'

  it('are those that are wanted, then those that the body needs, none twice', () => {
    expect(betas({})).toEqual([])
    expect(betas({ mcp_servers: [] }, ['x', 'mcp-client-2025-11-20'])).toEqual(['x', 'mcp-client-2025-11-20'])
    expect(betas({ context_management: { edits: [{ type: 'clear_x' }] } }, ['x'])).toEqual(['x', management])
    expect(betas({ context_management: { edits: [{ type: 'compact_x' }, { type: 'clear_x' }] } })).toEqual([
      ...[management, 'compact-2026-01-12'],
    ])
    expect(betas({ context_management: { edits: [{}] } })).toEqual([management])
    for (const context_management of [{}, { edits: [] }, undefined]) {
      expect(betas({ context_management })).toEqual([])
    }
  })

  it.each<readonly [string, object, readonly string[]]>([
    ['a use of MCP', { type: 'mcp_tool_use' }, ['mcp-client-2025-11-20']],
    ['a result of MCP', { type: 'mcp_tool_result' }, ['mcp-client-2025-11-20']],
    ['a listing of MCP', { type: 'mcp_tool_listing' }, ['mcp-client-2026-09-15']],
    ['a compaction', { type: 'compaction' }, ['compact-2026-01-12']],
    ['a signed compaction', { type: 'compaction', signature: 's' }, ['compact-2026-09-04']],
    ['a block without such a need', { type: 'constructor' }, []],
  ])('hold what %s in a reply needs', (_what, block, needed) => {
    expect(betas(reply(block, { type: 'text' }))).toEqual(needed)
    expect(betas({ messages: [{ role: 'user', content: [block] }] })).toEqual([])
  })
})

describe('the half of a tool of the vendor', () => {
  it('is a use by its id, or a result by that of its use', () => {
    expect(readServerHalf({ type: 'x_tool_use', id: 'a', tool_use_id: 'b' })).toEqual({
      kind: 'use',
      id: 'a',
    })
    expect(readServerHalf({ type: 'x_tool_result', id: 'a', tool_use_id: 'b' })).toEqual({
      kind: 'result',
      id: 'b',
    })
    for (const block of [
      { type: 'x_tool_use', tool_use_id: 'b' },
      { type: 'x_tool_result', id: 'a' },
      { type: 'tool_use_x', id: 'a' },
      { type: 'text', id: 'a', tool_use_id: 'b' },
    ])
      expect(readServerHalf(block)).toBeUndefined()
  })

  it('is the caller of a block that names it', () => {
    expect(readCaller({ type: 'tool_use', caller: { tool_id: 'a' } })).toBe('a')
    for (const caller of ['a', { type: 'direct' }, null])
      expect(readCaller({ type: 'x', caller })).toBeUndefined()
  })
})
