import { createRuntime, defineAgent, memoryLedger, type RunId } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { readSpans, readTraceparent, traceRuns } from '@tallystick/otel'
import type { ToolCallId } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { memoryTracer, untilTraced } from './support/memory-providers.ts'

const [trace, above] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

async function runWith(traceId: string): Promise<{
  readonly runId: RunId
  readonly ledger: ReturnType<typeof memoryLedger>
  readonly sent: readonly string[]
}> {
  const ledger = memoryLedger()
  const sent: string[] = []
  const look = testTool({
    name: 'look',
    run: async (call: { readonly runId: RunId; readonly toolCallId: ToolCallId }) => {
      sent.push(await readTraceparent(ledger, call))
      return '21 °C'
    },
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Warm.' }])
  const agent = defineAgent({ name: 'weather', instructions: 'Look.', model, tools: [look] })
  const { runId } = await createRuntime({ ledger }).run(agent, 'How warm is it?', { traceId }).result
  return { runId, ledger, sent }
}

describe('the trace context of a run', () => {
  it.each(['00', '01'])(
    'continues that of its caller (flags %s), and continues in what a tool calls',
    async (flags) => {
      const { runId, ledger, sent } = await runWith(`00-${trace}-${above}-${flags}`)
      const spans = await Array.fromAsync(readSpans(ledger, runId))
      expect(spans.at(-1)).toMatchObject({ traceId: trace, parentSpanId: above, traceFlags: Number(flags) })
      expect(sent).toEqual([`00-${trace}-${spans[1]?.spanId}-${flags}`])
      expect(spans[1]?.name).toBe('execute_tool look')
      const { provider, spans: exported } = memoryTracer()
      const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start' })
      await untilTraced(tracing, ledger)
      await tracing.stop()
      // A caller whose trace is not recorded has none of this recorded.
      expect(exported()).toHaveLength(flags === '01' ? 4 : 0)
    },
  )

  it.each([
    'order 7',
    `00-${trace}-${above}`,
    `00-${trace}-${above}-01-more`,
    `ff-${trace}-${above}-01`,
    `00-${'0'.repeat(32)}-${above}-01`,
    `00-${trace}-${'0'.repeat(16)}-01`,
    `00-${trace.toUpperCase()}-${above}-01`,
    '0'.repeat(32),
  ])('is its own where the caller gives %s', async (traceId) => {
    const { runId, ledger } = await runWith(traceId)
    const root = (await Array.fromAsync(readSpans(ledger, runId))).at(-1)
    expect(root).toMatchObject({ traceId: runId.replaceAll('-', ''), traceFlags: 1 })
    expect(root?.parentSpanId).toBeUndefined()
  })

  it('takes a traceparent of a later version', async () => {
    const { runId, ledger } = await runWith(`cc-${trace}-${above}-01-what-the-future-holds`)
    expect((await Array.fromAsync(readSpans(ledger, runId))).at(-1)).toMatchObject({
      parentSpanId: above,
    })
  })

  it('of a run that is not known is that of the run alone', async () => {
    const runId = '019b76da-a800-73c8-874f-aeda9016a71f' as RunId
    const toolCallId = 'call_1' as ToolCallId
    expect(await readTraceparent(memoryLedger(), { runId, toolCallId })).toMatch(
      /^00-019b76daa80073c8874faeda9016a71f-[\da-f]{16}-01$/,
    )
  })
})
