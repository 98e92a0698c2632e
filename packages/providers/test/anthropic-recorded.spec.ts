import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { inPiecesOf } from './kit/bytes.ts'
import { callsOf, collect, deltasOf, finished, lastContext, lastUsage } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { recordings } from './kit/readings.ts'
import { missing, recordedBytes } from './kit/recorded.ts'
import type { Loose } from './kit/loose.ts'

async function replay(file: string) {
  const server = await serve({ pieces: inPiecesOf(997, recordedBytes(file)) })
  return collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
}

/** A field deep in what a part carries for the vendor. */
function carried(part: { readonly opaque?: { readonly data: unknown } } | undefined): Loose {
  return part?.opaque?.data
}

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`recorded replies of Anthropic${missing ? ` (${missing})` : ''}`, () => {
  it.each(recordings)('$file begins, streams and is counted as a person reads it', async (expected) => {
    const { signals } = await replay(expected.file)
    expect(signals[0]).toEqual({
      type: 'model_started',
      providerMessageId: expected.id,
      servedModel: expected.served,
    })
    expect(lastUsage(signals)).toEqual(expected.usage)
    expect(callsOf(signals).map((call) => [call.providerCallId, call.name, call.input])).toEqual(
      expected.calls,
    )
    const shown = deltasOf(signals)
    const seen = expected.parts.map(([kind, length, begins = '', ends = begins], place) => {
      const text = shown.get(place) ?? ''
      const whole = [kind, text.length, text.slice(0, begins.length), text.slice(text.length - ends.length)]
      return length === undefined ? [kind, ...(text === '' ? [] : [text])] : whole
    })
    expect(seen).toEqual(
      expected.parts.map(([kind, length, begins = '', ends = begins]) =>
        length === undefined ? [kind] : [kind, length, begins, ends],
      ),
    )
  })

  it.each(recordings.filter(({ context }) => context))(
    '$file says how long the conversation is beside what is billed',
    async ({ file, context }) => {
      expect(lastContext((await replay(file)).signals)).toBe(context)
    },
  )

  it.each(recordings.filter(({ stop }) => stop))('$file ends as a person reads it', async (expected) => {
    const { signals, completed } = await replay(expected.file)
    expect(completed).toBe(true)
    const reply = finished(signals)!
    expect([reply.stopReason, reply.rawStopReason, reply.providerMessageId]).toEqual([
      ...expected.stop!,
      expected.id,
    ])
    expect(reply.parts.map((part) => (part.type === 'provider' ? part.kind : part.type))).toEqual(
      expected.parts.map(([kind]) => kind),
    )
    expect(reply.parts.map((part) => part.part)).toEqual(expected.parts.map((_, place) => place))
    const texts = reply.parts.flatMap((part) => ('text' in part ? [[part.part, part.text] as const] : []))
    const shown = deltasOf(signals)
    expect(texts).toEqual(texts.map(([place]) => [place, shown.get(place) ?? '']))
  })

  it.each(recordings.filter(({ failure }) => failure))(
    '$file fails as a person reads it',
    async (expected) => {
      const { signals, failure } = await replay(expected.file)
      expect(failure).toMatchObject({ class: expected.failure, retryable: true })
      expect(finished(signals)).toBeUndefined()
    },
  )

  it('carries signatures and redacted thinking to the byte', async () => {
    const thinking = finished((await replay('thinking-text.sse')).signals)!.parts[0]
    expect(carried(thinking).block.signature).toMatch(/^EvMCCkYICxgC[A-Za-z0-9+/]{480}P\/UhjfQYAQ==$/)
    const redacted = finished((await replay('thinking-redacted.sse')).signals)!.parts.slice(0, 2)
    expect(redacted.map((part) => carried(part).block.data.length)).toEqual([744, 296])
    const silent = finished((await replay('advisor.sse')).signals)!.parts[0]
    expect(carried(silent).block.signature).toMatch(/^EpADCokBCA8Y.*VZhYFcZNzhgB$/)
  })

  it('carries what the vendor’s tools were asked and answered', async () => {
    const code = finished((await replay('code-execution.sse')).signals)!.parts
    expect(carried(code[2]).block.input).toEqual({ command: 'echo "65465-6544 * 65464-6+1.02255" | bc -l' })
    expect(carried(code[3])).toMatchObject({
      block: { content: { stdout: '-428330955.97745\n', return_code: 0 } },
      container: { id: 'container_011CaNRFAbjdPf4rmBarZzqQ', expires_at: '2026-04-24T11:13:36.730129Z' },
    })
    const search = finished((await replay('web-search-citations.sse')).signals)!.parts
    expect(carried(search[0]).block.input).toEqual({ query: 'latest stable Ruby version' })
    expect(carried(search[1]).block.content).toHaveLength(10)
    expect([2, 3, 4, 5].map((place) => carried(search[place])?.block.citations[0].url)).toEqual([
      'https://www.ruby-lang.org/en/downloads/',
      undefined,
      'https://www.ruby-lang.org/en/news/2026/07/14/ruby-4-0-6-released/',
      undefined,
    ])
    const mcp = finished((await replay('mcp-connector.sse')).signals)!.parts
    expect(carried(mcp[1]).block).toMatchObject({
      server_name: 'deepwiki',
      input: { repoName: 'pydantic/pydantic-ai' },
    })
  })

  it('carries who called a tool, and the container that waits for the answer', async () => {
    const first = finished((await replay('programmatic-1-code-exec-calls-tool.jsonl')).signals)!.parts
    const caller = { type: 'code_execution_20250825', tool_id: 'srvtoolu_01MzSrFWsmzBdcoQkGWLyRjK' }
    expect(carried(first[2]).block).toEqual({ caller })
    expect(carried(first[1]).container.id).toBe('container_011CWHPPTDTn1XufeRB9uHeH')
    expect(carried(first[1]).block.input.code).toMatch(/^\nimport asyncio\n[^]*asyncio\.run\(main\(\)\)\n$/)
    const second = finished((await replay('programmatic-2-prefilled-message-start.jsonl')).signals)!.parts
    expect(carried(second[0])).toMatchObject({
      block: { caller },
      container: { id: 'container_011CWHPPTDTn1XufeRB9uHeH', expires_at: '2025-12-20T05:33:37.969567Z' },
    })
  })

  it('carries a compaction with the summary that streamed into it', async () => {
    const [compaction] = finished((await replay('compaction-beta.sse')).signals)!.parts
    expect(carried(compaction).block.content).toMatch(
      /^The user provided a very long context[^]*Say hello to the user\.$/,
    )
  })
})
