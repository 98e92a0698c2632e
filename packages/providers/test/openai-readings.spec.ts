import { ProviderError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { ResponsesReader } from '../src/openai/responses-stream.ts'
import { readCitations, findRefusedField, readSources } from '../src/openai/request.ts'
import { fitSchema } from '../src/openai/tools.ts'
import { textShown } from './kit/collect.ts'
import { foldChat, foldResponse, tools } from './kit/openai-fold.ts'
import { chatBody } from './kit/openai-requests.ts'
import {
  added,
  choice,
  chunk,
  content,
  counted,
  created,
  failedResponse,
  role,
  said,
} from './kit/openai-streams.ts'

describe('the place of a citation', () => {
  const placeIn = (start_index: unknown, end_index: unknown) => {
    const url = 'https://a.example/'
    const [citation] = readCitations([{ type: 'url_citation', url, start_index, end_index } as JsonObject])
    expect(citation?.url).toBe(url)
    return citation?.place
  }

  it('is known where it is a part of the text', () => {
    expect(placeIn(0, 5)).toEqual({ from: 0, to: 5 })
    expect(placeIn(2, 3)).toEqual({ from: 2, to: 3 })
  })

  it.each([
    [0, 0],
    [5, 5],
    [3, 1],
    [-1, 3],
    [1.5, 3],
    [1, 3.5],
    [undefined, 3],
    [1, undefined],
  ])('is unknown from %s to %s', (from, to) => {
    expect(placeIn(from, to)).toBeUndefined()
  })
})

describe('citations and sources', () => {
  it('are those with an address or a file, whose fields may be in an object of their own', () => {
    expect(readCitations(undefined)).toEqual([])
    expect(readCitations([7, { type: 'url_citation' }])).toEqual([])
    const nested = { type: 'url_citation', url_citation: { url: 'https://a.example/', title: 'A' } }
    expect(readCitations([nested])).toEqual([{ url: 'https://a.example/', title: 'A' }])
    expect(
      readCitations([{ type: 'file_citation', file_id: 'f', filename: 'a.txt', quote: 'Rain.' }]),
    ).toEqual([{ fileId: 'f', title: 'a.txt', quote: 'Rain.' }])
    expect(readCitations([{ type: 'x', url: 'u', title: 'T', filename: 'f', content: 'c' }])).toEqual([
      { url: 'u', title: 'T', quote: 'c' },
    ])
  })

  it('are found in what a search did, and in what it answered', () => {
    const item = { action: { sources: [{ url: 'a' }] }, results: [{ file_id: 'f', filename: 'n' }, {}] }
    expect(readSources([...item.action.sources, ...item.results])).toEqual([
      { url: 'a' },
      { fileId: 'f', title: 'n' },
    ])
    expect(readSources(['u', { url: 'v', title: 't', filename: 'n' }, 5])).toEqual([
      { url: 'u' },
      { url: 'v', title: 't' },
    ])
  })
})

describe('a field that the server refuses', () => {
  const failure = (more: Partial<ProviderError>): ProviderError =>
    new ProviderError({
      ...{ class: 'invalid_request', message: "'temperature' is not supported.", retryable: false },
      ...more,
    })

  it('is found where the request was invalid, says so, and has the field', () => {
    const body = { model: 'm', temperature: 1 }
    expect(findRefusedField(failure({}), body)).toBe('temperature')
    expect(findRefusedField(failure({}), { model: 'm', seed: 1 })).toBeUndefined()
    expect(findRefusedField(failure({ class: 'overloaded' }), body)).toBeUndefined()
    expect(findRefusedField(failure({ message: "'temperature' is above 2." }), body)).toBeUndefined()
    expect(findRefusedField(failure({ message: 'temperature is unsupported.' }), body)).toBeUndefined()
    const both = failure({ message: "'top_p' and 'temperature' are not supported." })
    expect(findRefusedField(both, { ...body, top_p: 1 })).toBe('temperature')
    const effort = failure({ message: "'reasoning.effort' and 'temperature' are unsupported." })
    expect(findRefusedField(effort, { ...body, reasoning: {} })).toBe('reasoning.effort')
    expect(findRefusedField(effort, body)).toBe('temperature')
    for (const field of ['top_p', 'stop', 'seed', 'random_seed']) {
      const message = `The model does not support '${field}'.`
      expect(findRefusedField(failure({ message }), { ...body, [field]: 1 })).toBe(field)
    }
  })
})

describe('a stream of chats', () => {
  it.each<readonly [string, object, boolean]>([
    ['a role and no content', { role: 'assistant', content: null }, true],
    ['a role and an empty content', { role: 'assistant', content: '' }, true],
    ['a role and text', { role: 'assistant', content: 'Hm' }, false],
    ['a role and reasoning', { role: 'assistant', content: null, reasoning: 'Hm' }, false],
    ['text', { content: '' }, false],
  ])('is two replies where another id begins with %s', (_what, first, isSecond) => {
    const other = { ...choice(first as Record<string, unknown>), id: 'chatcmpl-2' }
    const { error } = foldChat([role, content('Hel'), content('lo'), other])
    expect(String(error).includes('a second reply began before the first had ended')).toBe(isSecond)
    expect(error === undefined).toBe(!isSecond)
  })

  it('continues where a chunk with another id ends it', () => {
    const last = { ...chunk([{ index: 0, delta: { role: 'assistant' }, finish_reason: 'stop' }]), id: 'x' }
    expect(foldChat([role, content('Hello'), last]).error).toBeUndefined()
  })
})

describe('a stream of responses', () => {
  const open = added(0, { type: 'message', id: 'msg_0', role: 'assistant', content: [] })
  const part = (text: string, more: object = {}) => ({
    ...{ type: 'response.content_part.added', output_index: 0, content_index: 0 },
    part: { type: 'output_text', text },
    ...more,
  })

  it('shows the text that a part begins with, once, and only of a message', () => {
    const shown = (...events: readonly object[]) =>
      textShown(foldResponse(counted(created(), ...events)).signals)
    expect(shown(open, part('Hel'), said(0, 'lo'))).toBe('Hello')
    expect(shown(open, part('Hel'), part('Hel'), said(0, 'lo'))).toBe('Hello')
    expect(shown(part('Hel'))).toBe('')
    expect(shown(added(0, { type: 'web_search_call', id: 'ws_0' }), part('Hel'))).toBe('')
    expect(shown(open, part('', { part: { type: 'refusal', refusal: 'No.' } }))).toBe('No.')
    expect(shown(open, part('', { part: { type: 'reasoning_text', text: 'Hm' } }))).toBe('')
  })

  it('ends with its failure, whatever comes after it', () => {
    const reader = new ResponsesReader({
      ...{ provider: 'openai', approvalTool: 'mcp_approval', nativeTools: {}, hasProviderTools: false },
      toolName: (name) => name,
      customField: () => 'sql',
      cleaned: (_, input) => input,
      ...tools,
      kept: () => undefined,
      providerState: () => undefined,
    })
    const events = counted(created(), open, failedResponse('server_error', 'It broke.'), said(0, 'lo'))
    const signals = events.flatMap((event) => [...reader.read(event as never)])
    expect(reader.failure?.message).toContain('It broke.')
    expect(textShown(signals)).toBe('')
  })
})

describe('a request of chats', () => {
  it('holds a message without content, so that the user keeps the last word', () => {
    expect(chatBody([{ role: 'user', parts: [] }]).messages.at(-1)).toEqual({
      role: 'user',
      content: '(The message is empty.)',
    })
  })

  it('holds the fields of a tool under its own name only', () => {
    const tools = ['look', 'toString'].map((name) => ({
      ...{ name, description: '', inputSchema: { type: 'object' }, effect: 'read' as const },
    }))
    const body = chatBody(
      [{ role: 'user', parts: [{ type: 'text', text: 'Go.' }] }],
      { toolFields: { look: { defer_loading: true } } },
      { tools },
    )
    expect(body.tools.map((tool: JsonObject) => tool['function'])).toEqual([
      expect.objectContaining({ name: 'look', defer_loading: true }),
      expect.not.objectContaining({ defer_loading: true }),
    ])
  })
})

describe('definitions of a strict schema', () => {
  it.each(['$defs', 'definitions'])('in %s are kept, and closed', (keyword) => {
    const inner = { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] }
    const { schema, strict } = fitSchema({
      ...{ type: 'object', properties: { a: { $ref: `#/${keyword}/inner` } }, required: ['a'] },
      [keyword]: { inner },
    })
    expect(strict).toBe(true)
    expect(schema[keyword]).toEqual({ inner: { ...inner, additionalProperties: false } })
  })
})
