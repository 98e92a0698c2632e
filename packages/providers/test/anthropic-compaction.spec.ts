import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { hello } from './kit/anthropic-sent.ts'
import { sseBytes } from './kit/bytes.ts'
import { brokenRules } from './kit/history-rules.ts'
import { type Answer, serve } from './kit/loopback.ts'
import { done, start, stop, toolBlock } from './kit/streams.ts'

const calling: Answer = {
  pieces: [sseBytes([start(), ...toolBlock(0, 'toolu_1', 'look', '{}'), done('tool_use'), stop])],
}
const block = { type: 'compaction', content: 'They looked.', signature: 'sig' }
const summary: Answer = {
  pieces: [
    sseBytes([
      start(),
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'compaction', stop_sequence: null },
        usage: {
          ...{ input_tokens: 0, output_tokens: 0 },
          iterations: [{ type: 'compaction', input_tokens: 144, output_tokens: 27 }],
        },
      },
      stop,
    ]),
  ],
}

describe('a summary that the application asks for', () => {
  const summarize = {
    modelSettings: { providerOptions: { anthropic: { compaction: { type: 'summarize' } } } },
  }

  async function compacted() {
    const server = await serve(calling, summary, { pieces: [hello] }, { pieces: [hello] })
    const model = anthropic('claude-opus-5-5', { apiKey: 'k', baseURL: server.url, promptCache: 'off' })
    const agent = defineAgent({
      ...{ name: 'a', instructions: 'Be brief.', model, tools: [testTool({ name: 'look' })] },
      modelSettings: { stop: ['END'] },
      prepareTurn: ({ turn }) => (turn === 1 ? summarize : {}),
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent] })
    const first = await runtime.run(agent, 'Look.', { sessionId: 's' }).result
    const later = await runtime.run(agent, 'And now?', { sessionId: 's' }).result
    const events = await Array.fromAsync(ledger.read(first.runId))
    expect(auditAll(events)).toBeDefined()
    return { server, first, later, events }
  }

  it('given prepareTurn asks for it, when the turn runs, then the request has no fields for a reply', async () => {
    const { server } = await compacted()
    const { body, headers } = server.arrivals[1]!
    expect(body['compaction']).toEqual({ type: 'summarize' })
    expect(body['stop_sequences']).toBeUndefined()
    expect(server.arrivals[0]!.body['stop_sequences']).toEqual(['END'])
    expect(headers['anthropic-beta']).toContain('compact-2026-09-04')
  })

  it('given the summary, when the run and its session go on, then it replaces all messages before it', async () => {
    const { server, first, later } = await compacted()
    expect([first.reason, later.reason]).toEqual(['answered', 'answered'])
    const [third, fourth] = server.arrivals.slice(2).map(({ body }) => body)
    for (const body of [third!, fourth!]) expect(brokenRules(body)).toEqual([])
    expect(third!['messages']).toEqual([
      { role: 'assistant', content: [block] },
      { role: 'user', content: [{ type: 'text', text: '(Go on from this summary.)' }] },
    ])
    expect(fourth!['messages']).toMatchObject([
      ...(third!['messages'] as readonly object[]),
      { role: 'assistant', content: [{ type: 'text' }] },
      { role: 'user', content: [{ type: 'text', text: 'And now?' }] },
    ])
  })

  it('given its usage, when it is counted, then all of it is billed, and only the summary fills the context', async () => {
    const { events } = await compacted()
    const used = events.flatMap((event) => (event.type === 'usage_updated' ? [event] : []))
    expect(used).toContainEqual(
      expect.objectContaining({
        usage: expect.objectContaining({ inputTokens: 144, outputTokens: 27 }),
        contextTokens: 27,
      }),
    )
  })
})
