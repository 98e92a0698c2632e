import type { AssistantPart, Message, ToolCallId } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { contentOf } from './kit/anthropic-content.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, finished, request } from './kit/collect.ts'
import { brokenRules } from './kit/history-rules.ts'
import { serve } from './kit/loopback.ts'
import { missing, recordedBytes } from './kit/recorded.ts'
import { rich } from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

const whole = missing
  ? []
  : [
      'advisor.sse',
      'code-execution.sse',
      'compaction-beta.sse',
      'fallback-model.sse',
      'mcp-connector.sse',
      'parallel-tools.sse',
      'programmatic-1-code-exec-calls-tool.jsonl',
      'programmatic-2-prefilled-message-start.jsonl',
      'refusal-after-text.sse',
      'text-then-one-tool.jsonl',
      'thinking-redacted.sse',
      'thinking-text.sse',
      'tool-no-args.jsonl',
      'tool-search.sse',
      'web-fetch-thinking.sse',
      'web-search-citations.sse',
    ]

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

  // The recordings are not in the repository; the title says when they are not there.
  describe.skipIf(missing)(`after a recorded reply${missing ? ` (${missing})` : ''}`, () => {
    it.each(whole)('%s holds it as it came', async (file) => {
      const bytes = recordedBytes(file)
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
})
