import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunId,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { readSpans, toSpans, type Span } from '@tallystick/otel'
import { describe, expect, it } from 'vitest'

const look = testTool({ name: 'look', run: () => '21 °C' })
const host = { clock: manualClock(), random: () => 0.5, report: () => {} }

async function spansIn(ledger: Ledger, runId: RunId): Promise<readonly Span[]> {
  return await Array.fromAsync(readSpans(ledger, runId))
}

/** Each span by its name, with the name of the span above it. */
function treeOf(spans: readonly Span[]): readonly (readonly [string, string | undefined])[] {
  const names = new Map(spans.map(({ spanId, name }) => [spanId, name]))
  return spans.map(({ name, parentSpanId = '' }) => [name, names.get(parentSpanId)])
}

const traceIdOf = (runId: string): string => runId.replaceAll('-', '')

describe('the spans of a run', () => {
  it('of a child run are below the call that started it, in the trace of its parent', async () => {
    const deep = defineAgent({ name: 'deep', instructions: 'Dig.', model: scriptedModel([{ text: 'Dug.' }]) })
    const middle = defineAgent({
      name: 'middle',
      instructions: 'Ask.',
      model: scriptedModel([
        { toolCalls: [{ name: 'deep', input: { task: 'Dig.' } }] },
        { text: 'So it is.' },
      ]),
      tools: [agentTool(deep, { description: 'Digs.' })],
    })
    const top = defineAgent({
      name: 'top',
      instructions: 'Ask.',
      model: scriptedModel([{ toolCalls: [{ name: 'middle', input: { task: 'Go.' } }] }, { text: 'Done.' }]),
      tools: [agentTool(middle, { description: 'Asks.' })],
    })
    const ledger = memoryLedger()
    const { runId } = await createRuntime({ ledger, host }).run(top, 'Go.').result
    const spans = await spansIn(ledger, runId)
    expect(treeOf(spans)).toEqual([
      ['chat scripted-1', 'invoke_agent top'],
      ['execute_tool middle', 'invoke_agent top'],
      ['chat scripted-1', 'invoke_agent top'],
      ['invoke_agent top', undefined],
      ['chat scripted-1', 'invoke_agent middle'],
      ['execute_tool deep', 'invoke_agent middle'],
      ['chat scripted-1', 'invoke_agent middle'],
      ['invoke_agent middle', 'execute_tool middle'],
      ['chat scripted-1', 'invoke_agent deep'],
      ['invoke_agent deep', 'execute_tool deep'],
    ])
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(runId)]))
    // The run of an agent alone, read without the runs above it from the ledger, has the same ids.
    const child = spans.at(-1)!.runId as RunId
    expect(await spansIn(ledger, child)).toEqual(spans.slice(-2))
  })

  it('name the agent that has the conversation after a handoff', async () => {
    const billing = defineAgent({
      name: 'billing',
      instructions: 'Bill.',
      model: scriptedModel([{ text: 'Paid.' }]),
    })
    const desk = defineAgent({
      name: 'desk',
      instructions: 'Sort.',
      model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_billing', input: {} }] }]),
      handoffs: [billing],
    })
    const ledger = memoryLedger()
    const { runId } = await createRuntime({ ledger, host }).run(desk, 'Pay.').result
    const spans = await spansIn(ledger, runId)
    expect(treeOf(spans)).toEqual([
      ['chat scripted-1', 'invoke_agent desk'],
      ['execute_tool transfer_to_billing', 'invoke_agent desk'],
      ['chat scripted-1', 'invoke_agent billing'],
      ['invoke_agent billing', 'invoke_agent desk'],
      ['invoke_agent desk', undefined],
    ])
    expect(spans.map(({ attributes }) => attributes['gen_ai.agent.name'])).toEqual([
      'desk',
      'desk',
      'billing',
      'billing',
      'desk',
    ])
    expect(spans.at(-1)?.attributes).toMatchObject({
      'tallystick.run.model_calls': 2,
      'tallystick.run.tool_calls': 1,
      'tallystick.run.turns': 2,
      'tallystick.run.finish_reason': 'answered',
    })
  })

  it('link the runs of a session, each with a trace of its own, or with the one that it was given', async () => {
    const agent = defineAgent({
      name: 'clerk',
      instructions: 'Note.',
      model: scriptedModel([{ text: 'One.' }, { text: 'Two.' }]),
      modelSettings: { temperature: 0.2, seed: 7, stop: ['END'] },
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, host })
    const given = 'a'.repeat(32)
    const first = await runtime.run(agent, 'First.', { sessionId: 'chat', traceId: given, tags: ['shop'] })
      .result
    const second = await runtime.run(agent, 'Second.', {
      sessionId: 'chat',
      traceId: 'order 7',
      workflowName: 'orders',
      groupId: 'g',
      modelSettings: { temperature: 1, topP: 0.5, reasoningEffort: 'low' },
    }).result
    const [chat, run] = await spansIn(ledger, first.runId)
    expect(run).toMatchObject({ traceId: given, links: [], status: 'unset' })
    expect(run?.attributes).toMatchObject({
      'gen_ai.conversation.id': 'chat',
      'tallystick.run.trace': given,
      'tallystick.run.tags': ['shop'],
    })
    expect(chat?.attributes).toMatchObject({
      'gen_ai.request.temperature': 0.2,
      'gen_ai.request.seed': 7,
      'gen_ai.request.stop_sequences': ['END'],
    })
    const [nextChat, next] = await spansIn(ledger, second.runId)
    expect(next).toMatchObject({
      traceId: traceIdOf(second.runId),
      links: [{ traceId: given, spanId: run?.spanId, attributes: { 'tallystick.run.relation': 'session' } }],
    })
    expect(next?.attributes).toMatchObject({
      'tallystick.run.relation': 'session',
      'tallystick.run.trace': 'order 7',
      'tallystick.run.workflow': 'orders',
      'tallystick.run.group': 'g',
    })
    expect(nextChat?.attributes).toMatchObject({
      'gen_ai.request.temperature': 1,
      'gen_ai.request.top_p': 0.5,
      'gen_ai.request.reasoning.level': 'low',
    })
  })

  it('of a fork begin where it begins, and link to its source', async () => {
    const clock = manualClock()
    const model = scriptedModel([
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Warm.' },
      { text: 'Warm again.' },
    ])
    const agent = defineAgent({ name: 'weather', instructions: 'Look.', model, tools: [look] })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent], host: { ...host, clock } })
    const source = await runtime.run(agent, 'How warm is it?').result
    const events = await Array.fromAsync(ledger.read(source.runId))
    const atSeq = events.find(({ type }) => type === 'tool_results_injected')!.seq
    clock.advance(5000)
    const fork = await runtime.fork(source.runId, { atSeq }).result
    const spans = await spansIn(ledger, fork.runId)
    expect(treeOf(spans)).toEqual([
      ['chat scripted-1', 'invoke_agent weather'],
      ['invoke_agent weather', undefined],
    ])
    const root = spans[1]!
    expect(root.startedAt).toBeGreaterThanOrEqual(events.at(-1)!.at + 5000)
    expect(root.traceId).toBe(traceIdOf(fork.runId))
    expect(root.links).toMatchObject([
      { traceId: traceIdOf(source.runId), spanId: toSpans(events).at(-1)?.spanId },
    ])
    expect(root.events.map(({ name }) => name)).toEqual(['tallystick.run_resumed'])
    expect(root.attributes['tallystick.run.model_calls']).toBe(1)
  })

  it('given a fork that asks anew about a call, when it is approved, then its wait is one span', async () => {
    const clock = manualClock()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
    const limits = { maxApprovalMs: 60_000 }
    const agent = defineAgent({ name: 'cashier', instructions: 'Pay.', model, limits, tools: [pay] })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger, agents: [agent], host: { ...host, clock } })
    const source = await runtime.run(agent, 'Pay.').result
    clock.advance(5000)
    const fork = runtime.fork(source.runId, { atSeq: source.seq })
    const { pendingApprovals } = await fork.result
    await fork.approve(pendingApprovals[0]!.toolCallId, { by: 'ada' })
    await fork.result
    const events = await Array.fromAsync(ledger.read(fork.id))
    expect(events.filter(({ type }) => type === 'approval_requested')).toHaveLength(2)
    const waits = (await spansIn(ledger, fork.id)).filter(({ name }) => name === 'approval pay')
    expect(waits).toMatchObject([{ attributes: { 'tallystick.approval.approved': true } }])
    expect(waits[0]!.startedAt).toBeGreaterThanOrEqual(events[0]!.at + 5000)
  })

  it('hold each attempt of a call of a model, with what all of them used', async () => {
    const clock = manualClock()
    const usage = { inputTokens: 10, outputTokens: 1 }
    const model = scriptedModel([
      { text: 'Wa', usage, fail: 'overloaded' },
      { text: 'Warm.', usage },
    ])
    const agent = defineAgent({ name: 'weather', instructions: 'Say.', model })
    const ledger = memoryLedger()
    const running = createRuntime({ ledger, host: { ...host, clock } }).run(agent, 'How warm is it?')
    while (!(await Promise.race([running.result.then(() => true), tick()]))) clock.advanceToNext()
    const [chat, run] = await spansIn(ledger, running.id)
    expect(chat?.attributes).toMatchObject({
      'tallystick.attempts': 2,
      'gen_ai.usage.input_tokens': 20,
      'gen_ai.response.time_to_first_chunk': 0,
      'gen_ai.response.finish_reasons': ['stop'],
    })
    expect(chat?.events).toMatchObject([
      {
        name: 'tallystick.attempt_failed',
        attributes: { 'tallystick.attempt': 1, 'error.type': 'overloaded' },
      },
    ])
    expect(chat?.status).toBe('unset')
    // No price is on record, which is not the price of nothing.
    expect(chat?.attributes).not.toHaveProperty(['tallystick.cost_usd'])
    expect(chat!.endedAt).toBeGreaterThan(chat!.startedAt)
    expect(run?.attributes['tallystick.run.model_calls']).toBe(1)
  })

  it('say in a word what failed, and nothing that was said', async () => {
    const secret = 'sk-live-of-the-customer'
    const failing = testTool({
      name: 'look',
      run: () => {
        throw new Error(secret)
      },
    })
    const model = scriptedModel([
      {
        toolCalls: [
          { name: 'look', input: { secret } },
          { name: `no\u0000thing${'x'.repeat(1000)}`, input: {} },
        ],
      },
      { fail: 'invalid_request' },
    ])
    const agent = defineAgent({ name: 'weather', instructions: secret, model, tools: [failing] })
    const ledger = memoryLedger()
    const { runId } = await createRuntime({ ledger, host }).run(agent, secret, { metadata: { secret } })
      .result
    const spans = await spansIn(ledger, runId)
    expect(spans.map(({ attributes, status }) => [attributes['error.type'], status])).toEqual([
      [undefined, 'unset'],
      ['unknown_tool', 'error'],
      ['failed', 'error'],
      ['invalid_request', 'error'],
      ['model_failed', 'error'],
    ])
    expect(JSON.stringify(spans)).not.toContain(secret)
    expect(spans[1]?.name).toBe(`execute_tool no\uFFFDthing${'x'.repeat(192)}…`)
    expect(spans[1]).toMatchObject({ startedAt: spans[1]!.endedAt })
    expect(spans[1]?.attributes['tallystick.attempts']).toBeUndefined()
  })
})

function tick(): Promise<false> {
  return new Promise((resolve) => void setImmediate(() => resolve(false)))
}
