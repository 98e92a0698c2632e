import { describe, expect, it } from 'vitest'
import { deltasOf } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { foldChat, foldResponse } from './kit/openai-fold.ts'
import { chatBody } from './kit/openai-requests.ts'
import { added, chunk, completed, content, created, delta, finish, role } from './kit/openai-streams.ts'

describe('a stream of chats', () => {
  const first = (chunks: readonly object[]): unknown =>
    foldChat([...chunks, content('x'), finish('stop')]).signals[0]

  it('begins at the first chunk that names the reply or the model, or has a choice', () => {
    const started = { type: 'model_started' }
    expect(first([chunk([], { id: 'a', model: '' }), role])).toEqual({ ...started, providerMessageId: 'a' })
    expect(first([chunk([], { id: '', model: 'm' }), role])).toEqual({ ...started, servedModel: 'm' })
    expect(first([chunk([{ index: 0, delta: {} }], { id: '', model: '' }), role])).toEqual(started)
  })
})

describe('a stream of responses', () => {
  it('parts paragraphs of reasoning only where more of it comes', () => {
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'reasoning', id: 'rs_0', summary: [] })],
      ...[delta('reasoning_text', 0, 'So.'), { ...delta('reasoning_text', 0, ''), content_index: 1 }],
      completed(),
    ])
    expect(deltasOf(signals).get(0)).toBe('So.')
  })
})

describe('a server whose templates know only turns', () => {
  const image = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }
  const pictured = { role: 'user' as const, parts: [image] }
  const part = { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }
  const contentOf = (...messages: Parameters<typeof chatBody>[0]): unknown =>
    chatBody(messages, { server: 'vllm' }).messages[1].content

  it('gets texts and pictures of neighbours as parts of one message', () => {
    expect(contentOf(user('Look'), pictured)).toEqual([{ type: 'text', text: 'Look' }, part])
    expect(contentOf(pictured, user('Look'))).toEqual([part, { type: 'text', text: 'Look' }])
    expect(contentOf(pictured, pictured)).toEqual([part, part])
  })
})
