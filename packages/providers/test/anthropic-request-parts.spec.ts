// The parts of a request to Anthropic, one at a time: marks of the prompt cache, betas, blocks, and the halves of its own tools.
import type { ResultPart, UserPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { listBetas, markCache } from '../src/anthropic/request.ts'
import {
  readCaller,
  toContentBlocks,
  toResultBlock,
  readServerHalf,
  toTextBlock,
} from '../src/anthropic/messages.ts'

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

describe('what a user sends, or a tool answers', () => {
  const blocks = (part: object, citations = false) =>
    toContentBlocks([part as UserPart | ResultPart], citations)
  const base64 = (words: string) => Buffer.from(words).toString('base64')

  it('is not a block where it is a blank text, and whole characters else', () => {
    expect([toTextBlock(''), toTextBlock(' \n\t')]).toEqual([[], []])
    expect(toTextBlock(' a ')).toEqual([text(' a ')])
    expect(toTextBlock('a\ud800')).toEqual([text('a\ufffd')])
  })

  it.each<readonly [string, object, object]>([
    ['jpeg', { mediaType: 'image/jpeg', data: 'QQ==' }, { media_type: 'image/jpeg', data: 'QQ==' }],
    ['jpg', { mediaType: 'IMAGE/JPG; q=1', data: 'QQ==' }, { media_type: 'image/jpeg', data: 'QQ==' }],
    ['png', { mediaType: 'image/png', data: 'QQ==' }, { media_type: 'image/png', data: 'QQ==' }],
    ['gif', { mediaType: 'image/gif', data: 'QQ==' }, { media_type: 'image/gif', data: 'QQ==' }],
    ['webp', { mediaType: 'image/webp', data: 'QQ==' }, { media_type: 'image/webp', data: 'QQ==' }],
  ])('is an image of a type that the vendor takes: %s', (_type, part, source) => {
    expect(blocks({ type: 'image', ...part })).toEqual([
      { type: 'image', source: { type: 'base64', ...source } },
    ])
  })

  it('is an image by its address, and in words where it is of another type or without data', () => {
    const url = 'https://a.example/x.png'
    expect(blocks({ type: 'image', mediaType: 'image/tiff', url })).toEqual([
      { type: 'image', source: { type: 'url', url } },
    ])
    for (const part of [
      { mediaType: 'image/tiff', data: 'QQ==' },
      { mediaType: 'image/png', data: '' },
      { mediaType: 'image/png' },
    ])
      expect(blocks({ type: 'image', ...part })).toMatchObject([{ type: 'text' }])
  })

  it.each([
    ...['text/plain', 'text/csv', 'application/json', 'application/xml', 'application/yaml'],
    ...['application/x-yaml', 'application/javascript', 'application/typescript', 'application/toml'],
    ...['application/x-ndjson', 'application/sql', 'TEXT/HTML; charset=utf-8'],
  ])('is a document of text where it is a file of %s', (mediaType) => {
    expect(blocks({ type: 'file', mediaType, data: base64('häh'), name: 'n' }, true)).toEqual([
      {
        type: 'document',
        source: { type: 'text', media_type: 'text/plain', data: 'häh' },
        title: 'n',
        citations: { enabled: true },
      },
    ])
    expect(blocks({ type: 'file', mediaType, data: base64(' \n') })).toMatchObject([{ type: 'text' }])
    expect(blocks({ type: 'file', mediaType, url: 'https://a.example/x' })).toMatchObject([{ type: 'text' }])
  })

  it('is a document where it is a PDF, by its address first', () => {
    const pdf = { type: 'file', mediaType: 'application/pdf' }
    const url = 'https://a.example/x.pdf'
    expect(blocks({ ...pdf, url, data: 'QQ==', name: '' })).toEqual([
      { type: 'document', source: { type: 'url', url } },
    ])
    expect(blocks({ ...pdf, data: 'QQ==' })).toEqual([
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'QQ==' } },
    ])
    for (const part of [pdf, { ...pdf, data: '' }, { ...pdf, mediaType: 'application/jsonl', data: 'QQ==' }])
      expect(blocks(part)).toMatchObject([{ type: 'text' }])
  })

  it('is a result, with what it holds, or that it ended without output', () => {
    const result = (outcome: string, content: readonly object[]) =>
      toResultBlock({ toolCallId: 'c', name: 'f', outcome, content } as never, false, (id) => id)
    const base = { type: 'tool_result', tool_use_id: 'c' }
    expect(result('success', [])).toEqual(base)
    expect(result('success', [text('x')])).toEqual({ ...base, content: [text('x')] })
    expect(result('failed', [text('x'), text(' ')])).toEqual({
      ...base,
      content: [text('x')],
      is_error: true,
    })
    expect(result('denied', [])).toEqual({
      ...base,
      content: [text('The call ended as denied, without output.')],
      is_error: true,
    })
    const image = { type: 'image', mediaType: 'image/png', data: 'QQ==' }
    expect(result('failed', [image])).toMatchObject({ content: [{ type: 'text' }], is_error: true })
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
