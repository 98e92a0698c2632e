import {
  agentTool,
  createRuntime,
  defineAgent,
  memoryLedger,
  type Ledger,
  type RunOptions,
} from '@tallystick/core'
import { hostileTexts, scriptedModel, testTool } from '@tallystick/testkit'
import { readSpans, toSpans, traceRuns, type Attributes } from '@tallystick/otel'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { memoryTracer, untilTraced } from './support/memory-providers.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

const variable = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'

async function said(
  result = '21 °C',
  input = 'How warm is it?',
  options: Pick<RunOptions, 'tracing' | 'traceContent'> = {},
): Promise<Ledger> {
  const look = testTool({ name: 'look', run: () => result })
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: { city: 'Seoul' } }] },
    { text: 'Warm.' },
  ])
  const agent = defineAgent({ name: 'weather', instructions: 'Look.', model, tools: [look] })
  const ledger = memoryLedger()
  await createRuntime({ ledger }).run(agent, input, options).result
  return ledger
}

/** The attributes of the spans of the one run of a ledger. */
async function attributesIn(
  ledger: Ledger,
  options?: { readonly content?: boolean },
): Promise<readonly Attributes[]> {
  const [{ runId } = { runId: undefined as never }] = await Array.fromAsync(ledger.runs())
  return (await Array.fromAsync(readSpans(ledger, runId, options))).map(({ attributes }) => attributes)
}

const json = (value: unknown): unknown => JSON.parse(String(value)) as unknown

describe('the content of spans', () => {
  it('is what the model was shown and what it said, for those who ask for it', async () => {
    const [first, call, second] = await attributesIn(await said(), { content: true })
    const user = { role: 'user', parts: [{ type: 'text', content: 'How warm is it?' }] }
    const id = call?.['gen_ai.tool.call.id']
    const asked = { type: 'tool_call', id, name: 'look', arguments: { city: 'Seoul' } }
    expect(json(first?.['gen_ai.system_instructions'])).toEqual([{ type: 'text', content: 'Look.' }])
    expect(json(first?.['gen_ai.input.messages'])).toEqual([user])
    expect(json(first?.['gen_ai.output.messages'])).toEqual([
      { role: 'assistant', parts: [asked], finish_reason: 'tool_call' },
    ])
    expect(json(first?.['gen_ai.tool.definitions'])).toMatchObject([{ type: 'function', name: 'look' }])
    expect(call?.['gen_ai.tool.call.arguments']).toBe('{"city":"Seoul"}')
    expect(call?.['gen_ai.tool.call.result']).toBe('21 °C')
    expect(json(second?.['gen_ai.input.messages'])).toEqual([
      user,
      { role: 'assistant', parts: [asked] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id, response: '21 °C' }] },
    ])
    expect(json(second?.['gen_ai.output.messages'])).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'Warm.' }], finish_reason: 'stop' },
    ])
  })

  it.each([
    ['SPAN_ONLY', true],
    ['SPAN_AND_EVENT', true],
    ['true', true],
    ['EVENT_ONLY', false],
    ['NO_CONTENT', false],
    ['', false],
  ])('is as the environment says: %s', async (value, isThere) => {
    vi.stubEnv(variable, value)
    const [chat] = await attributesIn(await said())
    expect('gen_ai.input.messages' in chat!).toBe(isThere)
  })

  it('is absent where the program says so, whatever the environment says', async () => {
    vi.stubEnv(variable, 'SPAN_ONLY')
    const ledger = await said()
    expect(JSON.stringify(await attributesIn(ledger, { content: false }))).not.toContain('Warm.')
  })

  it('is exported live, too', async () => {
    const ledger = await said()
    const { provider, spans } = memoryTracer()
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start', content: true })
    await untilTraced(tracing, ledger)
    await tracing.stop()
    expect(spans().map(({ attributes }) => attributes)).toEqual(await attributesIn(ledger, { content: true }))
  })

  it('is bounded, well formed and without NUL, whatever a tool or a user says', async () => {
    const long = 'x'.repeat(3_000_000)
    const [, call, second] = await attributesIn(await said(long, long), { content: true })
    expect(String(call?.['gen_ai.tool.call.result'])).toBe(`${'x'.repeat(16_384)}…`)
    expect(String(second?.['gen_ai.input.messages']).length).toBeLessThan(300_000)
    for (const { text } of hostileTexts) {
      for (const attributes of await attributesIn(await said(text, text || 'Hm?'), { content: true })) {
        for (const value of Object.values(attributes).filter((each) => typeof each === 'string')) {
          expect(value.isWellFormed()).toBe(true)
          expect(value).not.toContain('\0')
        }
      }
    }
  })

  it('changes nothing else', async () => {
    const ledger = await said()
    const events = (await Array.fromAsync(ledger.tail())).map(({ event }) => event)
    const bare = toSpans(events).map(({ spanId, startedAt, endedAt }) => ({ spanId, startedAt, endedAt }))
    const full = toSpans(events, { content: true })
    expect(full.map(({ spanId, startedAt, endedAt }) => ({ spanId, startedAt, endedAt }))).toEqual(bare)
  })
})

describe('a run that says how it is traced', () => {
  it('has no content in its spans, whatever the exporter says, live and from the record', async () => {
    const ledger = await said('21 °C', 'How warm is it?', { traceContent: false })
    const { provider, spans } = memoryTracer()
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start', content: true })
    await untilTraced(tracing, ledger)
    expect(spans()).toHaveLength(4)
    const all = [
      ...(await attributesIn(ledger, { content: true })),
      ...spans().map(({ attributes }) => attributes),
    ]
    expect(JSON.stringify(all)).not.toMatch(/How warm|21 °C|Seoul/)
  })

  it('has no spans at all where it is not traced, nor have its child runs', async () => {
    const ledger = memoryLedger()
    const model = scriptedModel([{ text: 'Dry.' }])
    const helper = defineAgent({ name: 'helper', description: 'Looks.', instructions: 'Look.', model })
    const asks = scriptedModel([
      { toolCalls: [{ name: 'helper', input: { task: 'Look.' } }] },
      { text: 'Dry.' },
    ])
    const lead = defineAgent({ name: 'lead', instructions: 'Ask.', model: asks, tools: [agentTool(helper)] })
    const { runId } = await createRuntime({ ledger }).run(lead, 'Go.', { tracing: false }).result
    const { provider, spans } = memoryTracer()
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start' })
    await untilTraced(tracing, ledger)
    expect(spans()).toEqual([])
    expect(await Array.fromAsync(readSpans(ledger, runId))).toEqual([])
    const events = await Array.fromAsync(ledger.tail(), ({ event }) => event)
    expect(toSpans(events)).toEqual([])
  })
})
