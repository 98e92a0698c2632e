import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { toSpans, toOtlp, traceRuns, type OtlpSpan } from '@tallystick/otel'
import { describe, expect, it } from 'vitest'
import { memoryTracer, untilTraced } from './support/memory-providers.ts'

interface Request {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

const spansIn = ({ resourceSpans }: Request): readonly OtlpSpan[] =>
  resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))

/** What both of them say of a span; the official serializer also counts what its SDK has dropped. */
function facts({ traceId, spanId, name, kind, parentSpanId, ...span }: OtlpSpan): unknown {
  const { startTimeUnixNano, endTimeUnixNano, attributes, events, links, status } = span
  return {
    ...{ traceId, spanId, name, kind, parentSpanId, startTimeUnixNano, endTimeUnixNano, attributes },
    events: events.map(({ name: event, timeUnixNano, attributes: of }) => ({ event, timeUnixNano, of })),
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId, of: link.attributes })),
    code: status.code,
  }
}

describe('spans as OTLP', () => {
  it('are what the official serializer makes of the same spans', async () => {
    const look = testTool({
      name: 'look',
      run: () => {
        throw new Error('dark')
      },
    })
    const model = scriptedModel([
      { text: 'One.', usage: { inputTokens: 3, outputTokens: 1 } },
      { toolCalls: [{ name: 'look', input: {} }] },
      { text: 'Dark.' },
    ])
    const agent = defineAgent({
      name: 'weather',
      instructions: 'Look.',
      model,
      tools: [look],
      modelSettings: { temperature: 0.5, stop: ['END'] },
    })
    const ledger = memoryLedger()
    const runtime = createRuntime({ ledger })
    for (const input of ['First.', 'Second.']) {
      await runtime.run(agent, input, { sessionId: 's', tags: ['a', 'b'] }).result
    }
    const { provider, spans } = memoryTracer()
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start' })
    await untilTraced(tracing, ledger)
    await tracing.stop()
    const bytes = JsonTraceSerializer.serializeRequest([...spans()])
    const official = JSON.parse(new TextDecoder().decode(bytes)) as Request
    const ours = toOtlp(toSpans((await Array.fromAsync(ledger.tail())).map(({ event }) => event)))
    expect(spansIn(ours)).toHaveLength(6)
    expect(spansIn(ours).map(facts)).toEqual(spansIn(official).map(facts))
  })

  it('name the service that they are of', () => {
    const name = (stringValue: string): unknown => [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue } }] },
        scopeSpans: [{ scope: { name: '@tallystick/otel' }, spans: [] }],
      },
    ]
    expect(toOtlp([]).resourceSpans).toEqual(name('tallystick'))
    expect(toOtlp([], { serviceName: 'desk' }).resourceSpans).toEqual(name('desk'))
  })
})
