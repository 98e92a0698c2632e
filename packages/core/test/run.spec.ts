import { describe, expect, it } from 'vitest'
import { createRuntime, defineAgent, memoryLedger, type RuntimeEvent } from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'

async function eventsOf(run: AsyncIterable<RuntimeEvent>): Promise<RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of run) events.push(event)
  return events
}

describe('a run', () => {
  it('answers, and its ledger tells the whole way in order', async () => {
    const clock = manualClock()
    const model = scriptedModel([
      { text: 'Let me look.', toolCalls: [{ id: 'x', name: 'look', input: { at: 'sky' } }] },
      { text: 'It is blue.', usage: { inputTokens: 10, outputTokens: 3 } },
    ])
    const look = testTool({ name: 'look', run: ({ input }) => `${JSON.stringify(input['at'])} is blue` })
    const agent = defineAgent({ name: 'seer', instructions: 'Look.', model, tools: [look] })
    const runtime = createRuntime({
      ledger: memoryLedger(),
      agents: [agent],
      host: { clock, random: () => 0.5 },
    })
    const run = runtime.run(agent, 'What colour is the sky?')
    const result = await waitUntilSettled(clock, run.result)
    expect(result).toMatchObject({
      status: 'done',
      reason: 'answered',
      text: 'It is blue.',
      turns: 2,
      toolCalls: 1,
    })
    const events = await waitUntilSettled(clock, eventsOf(run))
    expect(events.map(({ type }) => type).filter((type) => !type.endsWith('delta'))).toEqual([
      'run_started',
      'input_received',
      'model_call_started',
      'assistant_started',
      'tool_request_ready',
      'assistant_message_finished',
      'tool_requests_collected',
      'tool_started',
      'tool_result',
      'tool_results_injected',
      'model_call_started',
      'assistant_started',
      'usage_updated',
      'assistant_message_finished',
      'run_finished',
    ])
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      results: [{ name: 'look', outcome: 'success', content: [{ type: 'text', text: '"sky" is blue' }] }],
    })
  })

  it('suspends for an approval and continues by the same handle', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'Paid.' }])
    const pay = testTool({
      name: 'pay',
      effect: 'write',
      check: () => ({ kind: 'ask', reason: 'money' }),
      run: () => 'ok',
    })
    const agent = defineAgent({ name: 'payer', instructions: '', model, tools: [pay] })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'Pay.')
    const rest = await waitUntilSettled(clock, run.result)
    expect(rest).toMatchObject({
      status: 'suspended',
      pendingApprovals: [{ name: 'pay', input: { usd: 5 }, reason: 'money' }],
    })
    expect(pay.runs).toHaveLength(0)
    const acknowledgement = run.approve(rest.pendingApprovals[0]?.toolCallId ?? '', { by: 'ann' })
    const result = await waitUntilSettled(clock, run.result)
    expect(await acknowledgement).toEqual({ accepted: true })
    expect(result).toMatchObject({ status: 'done', reason: 'answered', text: 'Paid.' })
    expect(pay.runs).toHaveLength(1)
  })
})
