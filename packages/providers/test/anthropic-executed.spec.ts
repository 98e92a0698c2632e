import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { checkLaws, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { sseBytes } from './kit/bytes.ts'
import { finished } from './kit/collect.ts'
import { fold, opaque } from './kit/fold.ts'
import { serve } from './kit/loopback.ts'
import { close, done, json, open, start, stop, textBlock, toolBlock } from './kit/streams.ts'

const whole = (index: number, block: object) => [open(index, block), close(index)]
const partsOf = (...events: object[]) =>
  finished(fold([start(), ...events, done('end_turn'), stop]).signals)!.parts
const executed = (...events: object[]) =>
  partsOf(...events).map((part) => (part.type === 'provider' ? part.executed : undefined))

describe('a call that Anthropic ran itself', () => {
  const use = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
  const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }

  it('is shown with what was asked, and how it ended', () => {
    const shown = executed(open(0, use), json(0, '{"query":"x"}'), close(0), ...whole(1, found))
    expect(shown).toEqual([
      { id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
      { id: 'srvtoolu_1', name: 'web_search', outcome: 'success' },
    ])
  })

  it.each([
    [
      'an error in place of a list',
      { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' },
    ],
    ['an error of a tool that runs code', { type: 'bash_code_execution_tool_result_error', error_code: 'x' }],
  ])('has failed with %s', (_, content) => {
    expect(executed(...whole(0, { ...found, content }))).toMatchObject([{ outcome: 'failed' }])
  })

  it('over MCP goes by its server too', () => {
    const shown = executed(
      ...whole(0, {
        type: 'mcp_tool_use',
        id: 'mcptoolu_1',
        name: 'ask',
        server_name: 'wiki',
        input: { q: 1 },
      }),
      ...whole(1, { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: true, content: [] }),
    )
    expect(shown).toEqual([
      { id: 'mcptoolu_1', name: 'wiki/ask', input: { q: 1 } },
      { id: 'mcptoolu_1', name: 'wiki/ask', outcome: 'failed' },
    ])
  })

  it('after a pause goes by the kind of its result', () => {
    expect(executed(...whole(0, found))).toEqual([
      { id: 'srvtoolu_1', name: 'web_search', outcome: 'success' },
    ])
  })

  it('is not a call of ours, nor are other blocks', () => {
    const signals = fold([start(), ...whole(0, use), done('pause_turn'), stop]).signals
    expect(signals.map(({ type }) => type)).not.toContain('model_tool_request')
    expect(executed(...whole(0, { type: 'container_upload', file_id: 'f' }), ...textBlock(1, 'x'))).toEqual([
      undefined,
      undefined,
    ])
  })

  it('goes into the ledger of a run, where everybody can see it, and back to the vendor as it came', async () => {
    const searched = [open(0, use), json(0, '{"query":"x"}'), close(0), ...whole(1, found)]
    const replies = [
      [start(), ...searched, ...toolBlock(2, 'toolu_1', 'get_time', '{}'), done('tool_use'), stop],
      [start(), ...textBlock(0, 'Noon.'), done('end_turn'), stop],
    ]
    const server = await serve(...replies.map((events) => ({ pieces: [sseBytes(events)] })))
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url, promptCache: 'off' })
    const agent = defineAgent({ name: 'a', instructions: '', model, tools: [testTool({ name: 'get_time' })] })
    const ledger = memoryLedger()
    const { runId, text } = await createRuntime({ ledger }).run(agent, 'What time is it?').result
    expect(text).toBe('Noon.')
    const events = await Array.fromAsync(ledger.read(runId))
    expect(checkLaws(events)).toEqual([])
    const [reply] = events.filter(({ type }) => type === 'assistant_message_finished')
    expect(reply).toMatchObject({
      parts: [
        { executed: { id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } } },
        { executed: { id: 'srvtoolu_1', name: 'web_search', outcome: 'success' } },
        { type: 'tool_call', name: 'get_time' },
      ],
    })
    expect(server.arrivals[1]!.body['messages'][1].content.slice(0, 2)).toEqual([
      { ...use, input: { query: 'x' } },
      found,
    ])
  })
})

describe('what the vendor says about the reply as a whole', () => {
  const details = {
    type: 'refusal',
    category: 'cyber',
    explanation: 'Because.',
    fallback_credit_token: 'tok_1',
  }

  it('is kept with a refusal, but for what is worth money', () => {
    const { signals } = fold([
      start(),
      ...textBlock(0, 'I'),
      done('refusal', { stop_details: details }),
      stop,
    ])
    expect(finished(signals)?.parts[1]).toEqual({
      ...{ type: 'provider', kind: 'stop_details', part: 1 },
      opaque: opaque({}, { note: { type: 'refusal', category: 'cyber', explanation: 'Because.' } }),
    })
    expect(JSON.stringify(signals)).not.toContain('tok_1')
  })

  it('is kept when it left something of the history out', () => {
    const management = { applied_edits: [{ type: 'clear_tool_uses_20250919', cleared_tool_uses: 3 }] }
    const { signals } = fold([
      start(),
      ...textBlock(0, 'Hi'),
      { ...done('end_turn'), context_management: management },
      stop,
    ])
    expect(finished(signals)?.parts[1]).toEqual({
      ...{ type: 'provider', kind: 'context_management', part: 1 },
      opaque: opaque({}, { note: management }),
    })
    const nothing = fold([start(), { ...done('end_turn'), context_management: { applied_edits: [] } }, stop])
    expect(finished(nothing.signals)?.parts).toEqual([])
  })
})
