import { describe, expect, it } from 'vitest'
import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { framesOf, openOffice, type Office } from './kit/office.ts'

/** The frames of a stream, with the run's id and time left out. */
async function streamOf(office: Office, path: string, body: object): Promise<readonly unknown[]> {
  const response = await office.send(path, 'ada', { model: 'thinker', stream: true, ...body })
  const frames: unknown[] = []
  for await (const { data } of framesOf(response)) {
    const named = data
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'RUN')
      .replaceAll(/call_[0-9a-f]{32}/g, 'call')
      .replaceAll(/"(created|created_at)":\d{10}\b/g, '"$1":0')
    frames.push(data === '[DONE]' ? data : JSON.parse(named))
  }
  return frames
}

/** An agent that thinks, says something, and leaves a call to its caller. */
function thinkingAgent(): Agent {
  const ship = testTool({
    name: 'ship',
    run: (_, report) => {
      report.defer('parcel')
      return ''
    },
  })
  const model = scriptedModel([
    {
      reasoning: '?',
      text: '!',
      toolCalls: [{ name: 'ship', input: { to: 'Ada' } }],
      usage: { inputTokens: 9 },
    },
  ])
  return defineAgent({ name: 'thinker', instructions: 'Ship.', model, tools: [ship] })
}

describe('a stream for a client of OpenAI', () => {
  it('holds these events of a response', async () => {
    const office = await openOffice({ agents: [thinkingAgent()] })
    const response = {
      ...{ id: 'resp_RUN', object: 'response', created_at: 0, model: 'thinker', status: 'in_progress' },
      ...{ error: null, incomplete_details: null, instructions: null, max_output_tokens: null, metadata: {} },
      ...{
        output: [],
        parallel_tool_calls: true,
        previous_response_id: null,
        store: true,
        temperature: null,
      },
      ...{
        text: { format: { type: 'text' } },
        tool_choice: 'auto',
        tools: [],
        top_p: null,
        truncation: 'disabled',
      },
      usage: null,
    }
    const summary = { type: 'summary_text', text: '?' }
    const part = { type: 'output_text', text: '!', annotations: [], logprobs: [] }
    const [rs, msg, fc] = [
      { id: 'rs_RUN.1', type: 'reasoning', summary: [summary] },
      { id: 'msg_RUN.2', type: 'message', status: 'completed', role: 'assistant', content: [part] },
      {
        ...{ id: 'fc_call_1_1_1', type: 'function_call', call_id: 'call_1_1_1', name: 'ship' },
        ...{ arguments: '{"to":"Ada"}', status: 'completed' },
      },
    ]
    const [inRs, inMsg, inFc] = [
      { item_id: rs.id, output_index: 0, summary_index: 0 },
      { item_id: msg.id, output_index: 1, content_index: 0 },
      { item_id: fc.id, output_index: 2 },
    ]
    const usage = {
      ...{ input_tokens: 9, input_tokens_details: { cached_tokens: 0 } },
      ...{ output_tokens: 0, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 9 },
    }
    const events: readonly (readonly [string, object])[] = [
      ['created', { response }],
      ['in_progress', { response }],
      ['output_item.added', { output_index: 0, item: { ...rs, summary: [] } }],
      ['reasoning_summary_part.added', { ...inRs, part: { ...summary, text: '' } }],
      ['reasoning_summary_text.delta', { ...inRs, delta: '?' }],
      ['reasoning_summary_text.done', { ...inRs, text: '?' }],
      ['reasoning_summary_part.done', { ...inRs, part: summary }],
      ['output_item.done', { output_index: 0, item: rs }],
      ['output_item.added', { output_index: 1, item: { ...msg, status: 'in_progress', content: [] } }],
      ['content_part.added', { ...inMsg, part: { ...part, text: '' } }],
      ['output_text.delta', { ...inMsg, delta: '!', logprobs: [] }],
      ['output_text.done', { ...inMsg, text: '!', logprobs: [] }],
      ['content_part.done', { ...inMsg, part }],
      ['output_item.done', { output_index: 1, item: msg }],
      ['output_item.added', { output_index: 2, item: { ...fc, arguments: '', status: 'in_progress' } }],
      ['function_call_arguments.delta', { ...inFc, delta: fc.arguments }],
      ['function_call_arguments.done', { ...inFc, name: 'ship', arguments: fc.arguments }],
      ['output_item.done', { output_index: 2, item: fc }],
      ['completed', { response: { ...response, status: 'completed', output: [rs, msg, fc], usage } }],
    ]
    expect(await streamOf(office, '/v1/responses', { input: 'Tea.' })).toEqual(
      events.map(([type, fields], index) => ({
        type: `response.${type}`,
        sequence_number: index,
        ...fields,
      })),
    )
  })

  it('holds these chunks of a completion', async () => {
    const office = await openOffice({ agents: [thinkingAgent()] })
    const body = { messages: [{ role: 'user', content: 'Tea.' }], stream_options: { include_usage: true } }
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...{ id: 'chatcmpl-RUN', object: 'chat.completion.chunk', created: 0, model: 'thinker' },
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    })
    const call = { id: 'call_1_1_1', type: 'function', function: { name: 'ship', arguments: '{"to":"Ada"}' } }
    const usage = {
      ...{ prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 },
      ...{ prompt_tokens_details: { cached_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } },
    }
    expect(await streamOf(office, '/v1/chat/completions', body)).toEqual([
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: '!' }),
      chunk({ tool_calls: [{ index: 0, ...call }] }),
      chunk({}, 'tool_calls'),
      { ...chunk({}), choices: [], usage },
      '[DONE]',
    ])
  })
})
