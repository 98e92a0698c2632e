import type { Message } from '@tallystick/core'
import type { AssistantPart, ToolCallId } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { ollama } from '../src/ollama.ts'
import { collect, finished, request } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { brokenRules } from './kit/ollama-history-rules.ts'
import { answer, done, lineBytes, rich, text } from './kit/ollama-lines.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'
import type { Loose } from './kit/loose.ts'

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
  for (const one of new TextDecoder().decode(bytes).split('\n')) {
    if (one.trim() === '') continue
    const { message, done: isLast } = JSON.parse(one)
    said.content += message.content
    said.thinking += message.thinking ?? ''
    for (const call of message.tool_calls ?? []) {
      said.calls.push({ name: call.function.name, arguments: call.function.arguments ?? {} })
      said.ids.push(call.id)
    }
    if (isLast) break
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

  it('holds a reply as it came, with its results after it', async () => {
    await check(lineBytes(rich))
    expect.hasAssertions()
  })

  // The input that a server wrote as text goes back as an object, and an empty reply not at all.
  const others = new Set(['input-as-text', 'no-content'])
  it.each(readingsIn('ollama').filter(({ stop, file }) => stop && !others.has(file)))(
    'after $file holds it as it came',
    async (reading) => {
      await check(bytesOf(reading))
      expect.hasAssertions()
    },
  )
})
