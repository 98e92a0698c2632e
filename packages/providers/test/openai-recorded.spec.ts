import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { inPiecesOf } from './kit/bytes.ts'
import { chatReadings } from './kit/chat-readings.ts'
import { callsOf, collect, deltasOf, finished, lastUsage } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { type Reading, responsesReadings } from './kit/openai-readings.ts'
import { missing, recordedBytes } from './kit/recorded.ts'

async function replay({ folder, file }: Pick<Reading, 'folder' | 'file'>) {
  const server = await serve({ pieces: inPiecesOf(997, recordedBytes(file, folder)) })
  const options = { apiKey: 'k', baseURL: server.url }
  const make = folder === 'openai-responses' ? openai : openaiChat
  return collect(make('gpt-test', options))
}

const responses = (file: string) => replay({ folder: 'openai-responses', file })

/** What a part carries for the vendor. */
function carried(part: { readonly opaque?: { readonly data: unknown } } | undefined): Loose {
  return part?.opaque?.data
}

const all = [...responsesReadings, ...chatReadings]

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`recorded replies of OpenAI and others${missing ? ` (${missing})` : ''}`, () => {
  it.each(all)('$folder/$file begins, streams and is counted as a person reads it', async (reading) => {
    const { signals } = await replay(reading)
    expect(signals[0]).toEqual({
      ...{ type: 'model_started', providerMessageId: reading.id, servedModel: reading.served },
    })
    expect(signals.filter(({ type }) => type === 'model_started')).toHaveLength(1)
    expect(lastUsage(signals)).toEqual(reading.usage)
    expect(callsOf(signals).map((call) => [call.providerCallId, call.name, call.input])).toEqual(
      reading.calls,
    )
    const shown = deltasOf(signals)
    const seen = reading.parts.map(([kind, length, begins = '', ends = begins], place) => {
      const text = shown.get(place) ?? ''
      const whole = [kind, text.length, text.slice(0, begins.length), text.slice(text.length - ends.length)]
      return length === undefined ? [kind, ...(text === '' ? [] : [text])] : whole
    })
    expect(seen).toEqual(
      reading.parts.map(([kind, length, begins = '', ends = begins]) =>
        length === undefined ? [kind] : [kind, length, begins, ends],
      ),
    )
  })

  it.each(all.filter(({ stop }) => stop))('$folder/$file ends as a person reads it', async (reading) => {
    const { signals, completed } = await replay(reading)
    expect(completed).toBe(true)
    const reply = finished(signals)!
    expect([reply.stopReason, reply.rawStopReason, reply.providerMessageId]).toEqual([
      ...reading.stop!,
      reading.id,
    ])
    expect(reply.parts.map((part) => (part.type === 'provider' ? part.kind : part.type))).toEqual(
      reading.parts.map(([kind]) => kind),
    )
    expect(reply.parts.map((part) => part.part)).toEqual(reading.parts.map((_, place) => place))
    const texts = reply.parts.flatMap((part) => ('text' in part ? [[part.part, part.text] as const] : []))
    const shown = deltasOf(signals)
    expect(texts).toEqual(texts.map(([place]) => [place, shown.get(place) ?? '']))
  })

  it.each(all.filter(({ failure }) => failure))(
    '$folder/$file fails as a person reads it',
    async (reading) => {
      const { signals, failure } = await replay(reading)
      expect([failure?.class, failure?.retryable]).toEqual(reading.failure)
      expect(finished(signals)).toBeUndefined()
    },
  )

  it('carries encrypted reasoning as it was when its item had ended', async () => {
    const [reasoning] = finished((await responses('encrypted-reasoning-turn1.jsonl')).signals)!.parts
    const { item } = carried(reasoning)
    // The item began with other encrypted content, which was not whole.
    expect(item.encrypted_content).toMatch(/^gAAAAABpPDIVOKrsHNZ0GwsoEKA_IGfuJ5f8Ma/)
    expect(item).toMatchObject({
      id: 'rs_01830d662ab3856501693c321405c88190be3ab04d5782d5f9',
      summary: [{ type: 'summary_text', text: expect.stringMatching(/^\*\*Calculating step-by-step/) }],
    })
    const [silent] = finished((await responses('reasoning-function-call.sse')).signals)!.parts
    expect(carried(silent).item).toMatchObject({ summary: [], type: 'reasoning' })
    expect(carried(silent).item.encrypted_content).toMatch(/^gAAAAABoyXvxI6jwG5j6rvTGC7PD6JN5758K/)
  })

  it('carries what the vendor’s tools were asked and answered', async () => {
    const code = finished((await responses('code-interpreter.sse')).signals)!.parts
    expect(code.slice(1, 4).map((part) => carried(part).item.code)).toEqual([
      'n = pow(123456, 123)\nlen(str(n))',
      'str(n)[:100], str(n)[-100:]',
      'n',
    ])
    const search = finished((await responses('reasoning-web-search.sse')).signals)!.parts
    expect(carried(search[1]).item.action).toEqual({
      ...{ type: 'search', query: 'weather: San Francisco, CA' },
      sources: [{ type: 'api', name: 'oai-weather' }],
    })
    const mcp = finished((await responses('mcp-call.sse')).signals)!.parts
    expect(carried(mcp[2]).item).toMatchObject({
      ...{ name: 'ask_question', server_label: 'deepwiki', error: null },
      output: expect.stringMatching(/^The `pydantic\/pydantic-ai` repository is a Python agent/),
    })
  })

  it('carries the phase of a message and the namespace of a call', async () => {
    const phased = finished((await responses('phase-commentary.sse')).signals)!.parts
    expect(carried(phased[1]).item.phase).toBe('commentary')
    const found = finished((await responses('tool-search.sse')).signals)!.parts
    expect(carried(found[2]).item.namespace).toBe('get_exchange_rate')
    expect(carried(found[1]).item.tools[0].name).toBe('get_exchange_rate')
  })

  it('carries where a server showed its reasoning', async () => {
    const seen = await replay({ folder: 'openai-compatible', file: 'deepseek-reasoning-tool.jsonl' })
    expect(carried(finished(seen.signals)!.parts[0])).toEqual({ reasoning: 'reasoning_content' })
    const ollama = await replay({ folder: 'openai-compatible', file: 'ollama-v1-gpt-oss-tool.sse' })
    expect(carried(finished(ollama.signals)!.parts[0])).toEqual({ reasoning: 'reasoning' })
  })
})
