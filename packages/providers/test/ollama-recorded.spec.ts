import type { AssistantPart, Message, ToolCallId } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { ollama } from '../src/ollama.ts'
import { inPiecesOf } from './kit/bytes.ts'
import { callsOf, collect, deltasOf, finished, lastUsage, request } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { brokenRules } from './kit/ollama-history-rules.ts'
import { answer, done, lineBytes, rich, text } from './kit/ollama-lines.ts'
import { recordings } from './kit/ollama-readings.ts'
import { missing, recordedBytes } from './kit/recorded.ts'
import type { Loose } from './kit/loose.ts'

const piecesOf = { 'in large pieces': 997, 'in tiny pieces': 7 } as const

async function replay(file: string, size: number) {
  const server = await serve(answer(inPiecesOf(size, recordedBytes(file, 'ollama'))))
  return collect(ollama('qwen3', { baseURL: server.url }))
}

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`recorded replies of Ollama${missing ? ` (${missing})` : ''}`, () => {
  describe.each(Object.entries(piecesOf))('%s', (_, size) => {
    it.each(recordings)('$file begins, streams and is counted as a person reads it', async (expected) => {
      const { signals } = await replay(expected.file, size)
      expect(signals[0]).toEqual({ type: 'model_started', servedModel: expected.served })
      expect(lastUsage(signals)).toEqual(expected.usage)
      expect(callsOf(signals).map((call) => [call.providerCallId, call.name, call.input])).toEqual(
        expected.calls,
      )
      const shown = deltasOf(signals)
      const seen = expected.parts.map(([kind, , begins = '', ends = begins], place) => {
        const words = shown.get(place)
        if (words === undefined) return [kind]
        return [kind, words.length, words.slice(0, begins.length), words.slice(words.length - ends.length)]
      })
      expect(seen).toEqual(
        expected.parts.map(([kind, length, begins = '', ends = begins]) =>
          length === undefined ? [kind] : [kind, length, begins, ends],
        ),
      )
    })

    it.each(recordings.filter(({ stop }) => stop))('$file ends as a person reads it', async (expected) => {
      const { signals, completed } = await replay(expected.file, size)
      expect(completed).toBe(true)
      const reply = finished(signals)!
      expect([reply.stopReason, reply.rawStopReason]).toEqual(expected.stop)
      expect(reply.parts.map((part) => [part.part, part.type])).toEqual(
        expected.parts.map(([kind], place) => [place, kind]),
      )
      const spoken = reply.parts.flatMap((part) => ('text' in part ? [[part.part, part.text] as const] : []))
      expect(spoken).toEqual([...deltasOf(signals)])
    })

    it.each(recordings.filter(({ failure }) => failure))(
      '$file fails as a person reads it',
      async (expected) => {
        const { signals, failure } = await replay(expected.file, size)
        expect(failure).toMatchObject({ class: expected.failure, retryable: true })
        expect(failure?.message).toContain('an error was encountered while running the model')
        expect(finished(signals)).toBeUndefined()
      },
    )
  })
})

/** One call that gets these bytes, and then the next one, whose body is answered. */
async function sentBack(bytes: Uint8Array): Promise<Record<string, Loose>> {
  const server = await serve(answer([bytes]), answer([lineBytes([text('Warm.'), done()])]))
  const model = ollama('qwen3', { baseURL: server.url })
  const { parts, stopReason } = finished((await collect(model)).signals)!
  const owned = parts.map(({ part, ...rest }): AssistantPart =>
    rest.type === 'tool_call'
      ? { ...rest, toolCallId: `call_${'0'.repeat(32)}_1_1_${part}` as ToolCallId }
      : rest,
  )
  const asked = owned.filter((part) => part.type === 'tool_call')
  const results = asked.map(({ toolCallId, name }, place) => {
    const content = [{ type: 'text' as const, text: `${place}` }]
    return { toolCallId, name, outcome: 'success' as const, content }
  })
  const messages: Message[] = [
    ...request.messages,
    { role: 'assistant', parts: owned, model, stopReason, partial: false },
    results.length > 0
      ? { role: 'tool', results }
      : { role: 'user', parts: [{ type: 'text', text: 'And then?' }] },
  ]
  await collect(model, { ...request, messages })
  return server.arrivals[1]!.body
}

/** What a body shows, put together without the adapter. Ids are kept apart: of two alike, one has to change. */
function saidIn(bytes: Uint8Array): Loose {
  const said: Loose = { content: '', thinking: '', calls: [], ids: [] }
  for (const one of new TextDecoder().decode(bytes).split('\n').filter(Boolean)) {
    const { message } = JSON.parse(one)
    said.content += message.content
    said.thinking += message.thinking ?? ''
    for (const call of message.tool_calls ?? []) {
      said.calls.push({ name: call.function.name, arguments: call.function.arguments ?? {} })
      said.ids.push(call.id)
    }
  }
  return said
}

describe('the next request', () => {
  const check = async (bytes: Uint8Array) => {
    const body = await sentBack(bytes)
    const [system, hello, reply, ...rest] = body['messages']
    const said = saidIn(bytes)
    expect([system.role, hello.content]).toEqual(['system', 'Hello'])
    expect([reply.role, reply.content, reply.thinking ?? '']).toEqual([
      'assistant',
      said.content,
      said.thinking,
    ])
    expect((reply.tool_calls ?? []).map((call: Loose) => call.function)).toEqual(said.calls)
    const ids = (reply.tool_calls ?? []).map((call: Loose) => call.id)
    ids.forEach((id: string, place: number) => {
      const first = said.ids.indexOf(said.ids[place]) === place
      if (said.ids[place] !== undefined && first) expect(id).toBe(said.ids[place])
    })
    const results = said.calls.map(({ name }: Loose, place: number) => ({
      ...{ role: 'tool', content: `${place}`, tool_name: name, tool_call_id: ids[place] },
    }))
    expect(rest).toEqual(results.length > 0 ? results : [{ role: 'user', content: 'And then?' }])
    expect(brokenRules(body)).toEqual([])
  }

  it('holds a reply as it came, with its results behind it', async () => {
    await check(lineBytes(rich))
    expect.hasAssertions()
  })

  // The recordings are not in the repository; the title says when they are not there.
  describe.skipIf(missing)(`after a recorded reply${missing ? ` (${missing})` : ''}`, () => {
    it.each(recordings.filter(({ failure }) => !failure))('$file holds it as it came', async ({ file }) => {
      await check(recordedBytes(file, 'ollama'))
      expect.hasAssertions()
    })
  })
})
