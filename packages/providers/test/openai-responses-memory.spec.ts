import type { AssistantPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { user } from './kit/history.ts'
import { carriedAs } from './kit/openai-fold.ts'
import { kept, replyOver, responsesBody as body, text } from './kit/openai-requests.ts'
import { ownModels } from './kit/openai-transcripts.ts'
import type { RenderSettings } from '../src/openai/responses-request.ts'

const assistant = replyOver('responses')

describe('what the vendor needs back', () => {
  const thought = (id: string, encrypted?: string): AssistantPart => ({
    ...{ type: 'reasoning', text: 'hm' },
    ...kept({ type: 'reasoning', id, summary: [], ...(encrypted && { encrypted_content: encrypted }) }, 0),
  })
  const said = text(
    'Yes',
    kept({ type: 'message', id: 'msg_1', status: 'completed', phase: 'final_answer' }, 1),
  )
  const search: AssistantPart = {
    ...{ type: 'provider', kind: 'web_search_call' },
    opaque: carriedAs('responses', {
      item: { type: 'web_search_call', id: 'ws_1', action: { query: 'x' } },
      at: 1,
    }),
  }
  const items = (parts: readonly AssistantPart[], more: object = {}, given: Partial<RenderSettings> = {}) =>
    body([user('x'), assistant(parts, more), user('y')], given).input.slice(1, -1)
  const plainYes = {
    type: 'message',
    role: 'assistant',
    phase: 'final_answer',
    content: [{ type: 'output_text', text: 'Yes' }],
  }

  it('goes back to the letter, ids, empty summary, status and phase included', () => {
    expect(items([thought('rs_1', 'ZW5j'), search, said])).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'ZW5j' },
      { type: 'web_search_call', id: 'ws_1', action: { query: 'x' } },
      {
        ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', phase: 'final_answer' },
        content: [{ type: 'output_text', text: 'Yes', annotations: [] }],
      },
    ])
  })

  it.each([
    ['has no encrypted content', [thought('rs_1'), search, said], {}],
    [
      'is another model’s',
      [thought('rs_1', 'ZW5j'), search, said],
      { model: { ...ownModels.responses, modelId: 'gpt-2' } },
    ],
    ['was cut', [thought('rs_1', 'ZW5j'), search, said], { partial: true }],
  ])('stays behind when the reply %s, and the rest goes without its ids', (_, parts, more) => {
    expect(items(parts, more)).toEqual([plainYes])
  })

  it('of another provider, or another wire, or another service, is not part of the request', () => {
    const bare = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes' }] }
    for (const model of [{ ...ownModels.responses, provider: 'azure' }, ownModels.chat]) {
      expect(items([thought('rs_1', 'ZW5j'), search, said], { model })).toEqual([bare])
    }
    expect(items([thought('rs_1', 'ZW5j'), said], {}, { provider: 'azure' })).toEqual([bare])
  })

  it('says that a summary is empty where its server left it out, and nothing that is null', () => {
    const item = { type: 'reasoning', id: 'rs_1', encrypted_content: 'ZW5j', status: null }
    const bare: AssistantPart = { type: 'reasoning', text: '', ...kept(item, 0) }
    expect(items([bare, said])[0]).toEqual({
      ...{ type: 'reasoning', id: 'rs_1', encrypted_content: 'ZW5j', summary: [] },
    })
  })

  it('loses reasoning that nothing followed', () => {
    expect(items([said, thought('rs_1', 'ZW5j'), thought('rs_2', 'ZW5j')])).toHaveLength(1)
    expect(items([thought('rs_1', 'ZW5j')])).toEqual([])
  })

  it('puts the pieces of one message together again, citations and refusals included', () => {
    const cited = [{ type: 'url_citation', url: 'https://example.org/' }]
    const item = { type: 'message', id: 'msg_1' }
    const parts = [
      text('One', kept(item, 0, { content: { type: 'output_text', annotations: cited } })),
      text('No', kept(item, 0, { content: { type: 'refusal' } })),
      text('Other', kept({ type: 'message', id: 'msg_2' }, 1, { content: { type: 'output_text' } })),
    ]
    expect(items(parts)).toEqual([
      {
        ...{ type: 'message', id: 'msg_1', role: 'assistant' },
        content: [
          { type: 'output_text', text: 'One', annotations: cited },
          { type: 'refusal', refusal: 'No' },
        ],
      },
      {
        ...{ type: 'message', id: 'msg_2', role: 'assistant' },
        content: [{ type: 'output_text', text: 'Other', annotations: [] }],
      },
    ])
  })

  it('keeps a search apart from the text before it, where a server gave both the same place', () => {
    const item = { type: 'web_search_call', id: 'ws_1', action: { query: 'x' } }
    const search: AssistantPart = { type: 'provider', kind: 'web_search_call', ...kept(item, 0) }
    const spoken = text('Look', kept({ type: 'message', id: 'msg_1' }, 0))
    expect(items([spoken, search])).toEqual([
      {
        ...{ type: 'message', id: 'msg_1', role: 'assistant' },
        content: [{ type: 'output_text', text: 'Look', annotations: [] }],
      },
      item,
    ])
  })

  it('keeps a compaction even where the rest has to go', () => {
    const item = { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }
    const part: AssistantPart = { type: 'provider', kind: 'compaction', ...kept(item, 0) }
    expect(items([part, thought('rs_1'), said])).toEqual([item, plainYes])
  })

  it('leaves out what only the caller could have answered, with the reasoning that led to it', () => {
    const click: AssistantPart = {
      type: 'provider',
      kind: 'computer_call',
      ...kept({ type: 'computer_call', id: 'cu_1' }, 1),
    }
    expect(items([thought('rs_1', 'ZW5j'), click, said])).toEqual([plainYes])
  })

  it('sends no id that the vendor would refuse', () => {
    const odd = text('Yes', kept({ type: 'message', id: 'a9f0-ü' }, 0))
    expect(items([odd])[0]).not.toHaveProperty('id')
  })
})
