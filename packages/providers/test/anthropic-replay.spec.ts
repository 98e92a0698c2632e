import type { Message } from '@tallystick/core'
import type { AssistantPart, ToolCallId } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { contentOf } from './kit/anthropic-content.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, request } from './kit/collect.ts'
import { brokenRules } from './kit/history-rules.ts'
import { serve } from './kit/loopback.ts'
import { bytesOf, readingsIn } from './kit/readings.ts'
import { rich } from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

/** Replies of which something does not go back: half of what the vendor ran itself, and nothing at all. */
const notWhole = new Set(['pause-of-a-long-turn', 'programmatic-4-final.jsonl', 'text-empty', 'no-content'])
const whole = readingsIn('anthropic').filter(
  ({ file, stop, parts, malformed }) =>
    stop &&
    stop[0] !== 'max_tokens' &&
    !malformed &&
    !notWhole.has(file) &&
    parts.some(([kind]) => kind !== 'stop_details'),
)

/** One call that gets these bytes, and then the next one, whose body is answered. */
async function sentBack(bytes: Uint8Array): Promise<Record<string, Loose>> {
  const server = await serve({ pieces: [bytes] })
  const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url, promptCache: 'off' })
  const { signals } = await collect(model)
  const { parts, stopReason } = finished(signals)!
  const owned = parts.map(({ part, ...rest }): AssistantPart =>
    rest.type === 'tool_call'
      ? { ...rest, toolCallId: `call_${'0'.repeat(32)}_1_1_${part}` as ToolCallId }
      : rest,
  )
  const calls = owned.filter((part) => part.type === 'tool_call')
  const messages: Message[] = [
    ...request.messages,
    { role: 'assistant', parts: owned, model, stopReason, partial: false },
    calls.length > 0
      ? {
          role: 'tool',
          results: calls.map(({ toolCallId, name }) => ({
            toolCallId,
            name,
            outcome: 'success',
            content: [],
          })),
        }
      : { role: 'user', parts: [{ type: 'text', text: 'And then?' }] },
  ]
  await collect(model, { ...request, messages })
  return server.arrivals[1]!.body
}

describe('the next request', () => {
  it('holds a reply as it came', async () => {
    const bytes = sseBytes(rich)
    const body = await sentBack(bytes)
    expect(body['messages'][1]).toEqual({ role: 'assistant', content: contentOf(bytes) })
    expect(body['container']).toBe('container_1')
    expect(brokenRules(body)).toEqual([])
  })

  it.each(whole)('after $file holds it as it came', async (reading) => {
    const bytes = bytesOf(reading)
    const body = await sentBack(bytes)
    const sent = body['messages'][1].content
    const content = contentOf(bytes)
    const uses = new Set(content.map(({ id }) => id))
    // A call from within a use that the history does not hold goes back as one like any other.
    const expected = content.map(({ caller, ...block }) =>
      caller === undefined || (caller.tool_id && !uses.has(caller.tool_id)) ? block : { ...block, caller },
    )
    expect(sent).toEqual(expected)
    expect(brokenRules(body)).toEqual([])
  })
})
