import type { Citation, ModelSignal, Source } from '@tallystick/core/vocabulary'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { collectCitations } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { AiSdkReader } from '../src/ai-sdk/stream.ts'
import { openai } from '../src/openai.ts'
import { createToolNames } from '../src/shared/request.ts'
import { sseBytes } from './kit/bytes.ts'
import { finished } from './kit/collect.ts'
import { fold } from './kit/fold.ts'
import { serve } from './kit/loopback.ts'
import { foldChat, foldResponse } from './kit/openai-fold.ts'
import {
  added,
  choice,
  chunk,
  completed,
  content,
  counted,
  created,
  finish,
  itemDone,
} from './kit/openai-streams.ts'
import { close, delta, done, open, start, stop, text } from './kit/streams.ts'

/** What the texts of a reply cite, and what its vendor's parts found. */
function reported(signals: readonly ModelSignal[]): {
  cited: (readonly Citation[])[]
  found: (readonly Source[])[]
} {
  const parts = finished(signals)!.parts
  return {
    cited: parts.flatMap((part) => (part.type === 'text' ? [part.citations ?? []] : [])),
    found: parts.flatMap((part) => (part.type === 'provider' && part.sources ? [part.sources] : [])),
  }
}

describe('what a reply of Anthropic cites', () => {
  const citing = (...citations: object[]) => {
    const cited = citations.map((citation) => delta(0, { type: 'citations_delta', citation }))
    const block = [
      open(0, { type: 'text', text: '', citations: [] }),
      ...cited,
      text(0, 'It rains.'),
      close(0),
    ]
    return fold([start(), ...block, done('end_turn'), stop]).signals
  }

  it('is data of its text: pages and web', () => {
    const signals = citing(
      {
        ...{ type: 'page_location', cited_text: 'Rain.', document_index: 0, document_title: 'Report' },
        ...{ start_page_number: 3, end_page_number: 5, file_id: 'file_1' },
      },
      {
        type: 'web_search_result_location',
        url: 'https://a.example/',
        title: 'A',
        cited_text: 'Wet.',
        encrypted_index: 'x',
      },
      { type: 'search_result_location', source: 'kb://1', title: null, cited_text: '' },
    )
    expect(reported(signals).cited).toEqual([
      [
        { title: 'Report', fileId: 'file_1', quote: 'Rain.', pages: { from: 3, to: 4 } },
        { url: 'https://a.example/', title: 'A', quote: 'Wet.' },
        { url: 'kb://1' },
      ],
    ])
    // What the vendor needs back is there as well, to the letter.
    expect(finished(signals)?.parts[0]?.opaque?.data).toMatchObject({
      block: { citations: [{ type: 'page_location', start_page_number: 3 }, { encrypted_index: 'x' }, {}] },
    })
  })

  it('and what its searches and fetches found is on their results', () => {
    const result = (type: string, found: unknown) => [
      open(0, { type, tool_use_id: 's1', content: found }),
      close(0),
    ]
    const page = { type: 'web_search_result', url: 'https://a.example/', title: 'A', encrypted_content: 'x' }
    const fetched = {
      type: 'web_fetch_result',
      url: 'https://b.example/',
      content: { type: 'document', title: 'B' },
    }
    const of = (type: string, found: unknown) =>
      reported(fold([start(), ...result(type, found), done('end_turn'), stop]).signals).found
    expect(of('web_search_tool_result', [page, { ...page, url: 'https://c.example/', title: '' }])).toEqual([
      [{ url: 'https://a.example/', title: 'A' }, { url: 'https://c.example/' }],
    ])
    expect(of('web_fetch_tool_result', fetched)).toEqual([[{ url: 'https://b.example/', title: 'B' }]])
    expect(of('web_search_tool_result', { type: 'web_search_tool_result_error' })).toEqual([])
  })

  it('is nothing where it says nothing', () => {
    expect(reported(citing()).cited).toEqual([[]])
    expect(finished(citing())?.parts[0]).not.toHaveProperty('citations')
  })
})

describe('what a response cites', () => {
  const annotations = [
    { type: 'url_citation', url: 'https://a.example/', title: 'A', start_index: 0, end_index: 9 },
    { type: 'file_citation', file_id: 'file_1', filename: 'report.pdf', index: 2 },
    { type: 'telepathy' },
  ]
  const item = {
    type: 'message',
    id: 'msg_1',
    content: [{ type: 'output_text', text: 'It rains.', annotations }],
  }
  const search = {
    ...{ type: 'web_search_call', id: 'ws_0', status: 'completed' },
    action: { type: 'search', query: 'x', sources: [{ type: 'url', url: 'https://a.example/' }] },
  }
  const files = {
    ...{ type: 'file_search_call', id: 'fs_0', status: 'completed', queries: ['x'] },
    results: [{ file_id: 'file_1', filename: 'report.pdf', score: 0.9, text: 'long' }],
  }
  const reply = [
    added(0, search),
    itemDone(0, search),
    added(1, files),
    itemDone(1, files),
    added(2, item),
    itemDone(2, item),
  ]

  it('is data of its text, and what it found is on the searches', () => {
    const { signals } = foldResponse([created(), ...reply, completed()])
    expect(reported(signals)).toEqual({
      cited: [
        [
          { url: 'https://a.example/', title: 'A', place: { from: 0, to: 9 } },
          { fileId: 'file_1', title: 'report.pdf' },
        ],
      ],
      found: [[{ url: 'https://a.example/' }], [{ fileId: 'file_1', title: 'report.pdf' }]],
    })
  })

  it('is in the ledger, and goes back as its vendor said it', async () => {
    const server = await serve({ pieces: [sseBytes(counted(created(), reply, completed()))] })
    const agent = defineAgent({
      ...{ name: 'a', instructions: '' },
      model: openai('m', { apiKey: 'k', baseURL: server.url }),
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent] })
    const { runId } = await runtime.run(agent, 'Weather?', { sessionId: 's' }).result
    const events = await Array.fromAsync(ledger.read(runId))
    const message = events.find((event) => event.type === 'assistant_message_finished')!
    expect(collectCitations(message.parts)).toHaveLength(2)
    await runtime.run(agent, 'And now?', { sessionId: 's' }).result
    const sent = server.arrivals[1]!.body['input']
    expect(sent.find(({ id }: { id?: string }) => id === 'msg_1').content[0].annotations).toEqual(annotations)
    expect(JSON.stringify(sent)).not.toContain('"citations"')
  })
})

describe('what a reply of a chat cites', () => {
  const url_citation = {
    url: 'https://a.example/',
    title: 'A',
    content: 'Wet.',
    start_index: 0,
    end_index: 9,
  }

  it('is data of its text, as OpenAI and OpenRouter annotate it', () => {
    const annotated = choice({ content: '', annotations: [{ type: 'url_citation', url_citation }] })
    const { signals } = foldChat([content('It rains.'), annotated, finish('stop')])
    const expected = { url: 'https://a.example/', title: 'A', quote: 'Wet.', place: { from: 0, to: 9 } }
    expect(reported(signals).cited).toEqual([[expected]])
  })

  it('is cited by the last words where a server lists it beside them, once', () => {
    const listed = chunk([], {
      citations: ['https://a.example/', { url: 'https://b.example/', title: 'B' }, 7],
    })
    const { signals } = foldChat([content('It '), listed, content('rains.'), finish('stop'), listed])
    expect(reported(signals).cited).toEqual([
      [{ url: 'https://a.example/' }, { url: 'https://b.example/', title: 'B' }],
    ])
  })
})

describe('what a reply through the AI SDK cites', () => {
  const source = {
    type: 'source',
    sourceType: 'url',
    id: '1',
    url: 'https://a.example/',
    title: 'A',
  } as const

  it('is data of its text, and each source is one of its part', () => {
    const names = createToolNames([], { maxLength: 64 })
    const reply = new AiSdkReader({
      provider: 'google',
      names,
      endOfStreamIsEnd: false,
      now: () => 0,
      warn: () => {},
    })
    const signals = [
      source,
      { type: 'source', sourceType: 'document', id: '2', mediaType: 'application/pdf', title: 'Report' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'It rains.' },
      { type: 'text-end', id: 't', citations: [{ source, startIndex: 0, endIndex: 9, citedText: 'Wet.' }] },
      {
        ...{ type: 'finish', finishReason: { unified: 'stop', raw: 'STOP' } },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
      },
    ].flatMap((part) => [...reply.read(part as never)])
    expect(reported(signals)).toEqual({
      cited: [[{ url: 'https://a.example/', title: 'A', quote: 'Wet.', place: { from: 0, to: 9 } }]],
      found: [[{ url: 'https://a.example/', title: 'A' }], [{ title: 'Report' }]],
    })
  })
})
