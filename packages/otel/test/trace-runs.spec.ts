import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import * as fc from 'fast-check'
import { createRuntime, defineAgent, memoryLedger, type Ledger } from '@tallystick/core'
import { manualClock, scriptedModel, testTool } from '@tallystick/testkit'
import { runIds, toSpans, traceRuns } from '@tallystick/otel'
import { describe, expect, it, onTestFinished } from 'vitest'
import { newTask, tries } from '../../../scripts/testing/effort.ts'
import {
  exportedSpan,
  memoryMeter,
  memoryTracer,
  projectedSpan,
  untilTraced,
} from './support/memory-providers.ts'
import { playProgram } from '../../../scripts/testing/programs/play-program.ts'
import { randomProgram } from '../../../scripts/testing/programs/random-program.ts'

const clock = manualClock()
const look = testTool({
  name: 'look',
  run: () => {
    clock.advance(2000)
    return '21 °C'
  },
})

function weatherOf(ledger: Ledger): { readonly run: (input?: string) => Promise<string> } {
  const usage = { inputTokens: 100, outputTokens: 20, cacheReadTokens: 60, reasoningTokens: 5 }
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: {} }], usage },
    { text: 'Warm.', usage },
  ])
  const agent = defineAgent({ name: 'weather', instructions: 'Look.', model, tools: [look] })
  const runtime = createRuntime({ ledger, host: { clock, random: () => 0.5, report: () => {} } })
  return {
    run: async (input = 'How warm is it?') => (await runtime.run(agent, input).result).runId,
  }
}

const bySpanId = (a: { readonly spanId: string }, b: { readonly spanId: string }): number =>
  a.spanId.localeCompare(b.spanId)

describe('a ledger that is traced', () => {
  it('exports each span of a run as it ends, under the ids and the times of its events', async () => {
    const ledger = memoryLedger()
    const { provider, spans } = memoryTracer()
    const tracing = traceRuns(ledger, { tracerProvider: provider })
    const runId = await weatherOf(ledger).run()
    await untilTraced(tracing, ledger)
    expect(spans().map(({ name }) => name)).toEqual([
      'chat scripted-1',
      'execute_tool look',
      'chat scripted-1',
      'invoke_agent weather',
    ])
    const events = await Array.fromAsync(ledger.read(runId as never))
    expect(spans().map(exportedSpan)).toEqual(toSpans(events).map(projectedSpan))
    expect(exportedSpan(spans()[1]!)).toMatchObject({ endedAt: toSpans(events)[1]!.startedAt + 2000 })
    await tracing.stop()
  })

  it('exports what the projection says of random runs, and after any cursor what ends after it', async () => {
    await fc.assert(
      fc
        .asyncProperty(randomProgram, fc.nat(), async (program, cut) => {
          const { ledger } = await playProgram(program)
          const tailed = await Array.fromAsync(ledger.tail())
          const all = toSpans(tailed.map(({ event }) => event))
          const [whole, rest] = [memoryTracer(), memoryTracer()]
          const { cursor } = tailed[cut % tailed.length]!
          const before = toSpans(tailed.slice(0, (cut % tailed.length) + 1).map(({ event }) => event))
          const tracings = [
            traceRuns(ledger, { tracerProvider: whole.provider, from: 'start' }),
            traceRuns(ledger, { tracerProvider: rest.provider, after: cursor }),
          ]
          for (const tracing of tracings) await untilTraced(tracing, ledger)
          for (const tracing of tracings) await tracing.stop()
          expect(whole.spans().map(exportedSpan)).toEqual(all.map(projectedSpan))
          expect(rest.spans().map(exportedSpan)).toEqual(all.slice(before.length).map(projectedSpan))
        })
        .beforeEach(newTask),
      { numRuns: tries(100) },
    )
  })

  it('ends when the ledger is closed, and reports nothing: the application closed it', async () => {
    const ledger = memoryLedger()
    const { provider } = memoryTracer()
    const reported: unknown[] = []
    const tracing = traceRuns(ledger, { tracerProvider: provider, report: (error) => reported.push(error) })
    await weatherOf(ledger).run()
    await untilTraced(tracing, ledger)
    await ledger.close()
    await tracing.ended
    expect(reported).toEqual([])
  })

  it('exports nothing of what ended before it was traced', async () => {
    const ledger = memoryLedger()
    const weather = weatherOf(ledger)
    await weather.run()
    const { provider, spans } = memoryTracer()
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'now' })
    await untilTraced(tracing, ledger)
    expect(spans()).toEqual([])
    await tracing.stop()
    await weather.run()
    await tracing.ended
    expect(spans()).toEqual([])
  })

  it('keeps parents right where a provider has ids of its own', async () => {
    const ledger = memoryLedger()
    await weatherOf(ledger).run()
    const { provider, spans } = memoryTracer(false)
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start' })
    await untilTraced(tracing, ledger)
    const [root] = spans().filter(({ parentSpanContext }) => parentSpanContext === undefined)
    const others = spans().filter((span) => span !== root)
    expect(others).toHaveLength(3)
    for (const { parentSpanContext, spanContext } of others.map((span) => ({
      parentSpanContext: span.parentSpanContext,
      spanContext: span.spanContext(),
    }))) {
      expect(parentSpanContext?.spanId).toBe(root!.spanContext().spanId)
      expect(spanContext.traceId).toBe(root!.spanContext().traceId)
    }
    await tracing.stop()
  })

  it('counts calls, tokens and times', async () => {
    const ledger = memoryLedger()
    await weatherOf(ledger).run()
    const { provider, sums } = memoryMeter()
    const tracing = traceRuns(ledger, { meterProvider: provider, from: 'start' })
    await untilTraced(tracing, ledger)
    const chat = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'scripted',
      'gen_ai.request.model': 'scripted-1',
      'gen_ai.response.model': 'scripted',
    }
    const run = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'weather',
      'gen_ai.request.model': 'scripted-1',
    }
    const counted = (value: number): readonly unknown[] => [
      { value, ...chat, 'gen_ai.token.modality': 'unknown' },
    ]
    expect(await sums()).toEqual({
      'gen_ai.client.inference.duration s': [{ value: { sum: 0, count: 2 }, ...chat }],
      'gen_ai.client.inference.time_to_first_chunk s': [{ value: { sum: 0, count: 2 }, ...chat }],
      'gen_ai.client.inference.usage.input_tokens {token}': counted(200),
      'gen_ai.client.inference.usage.output_tokens {token}': counted(40),
      'gen_ai.client.inference.usage.cache_read.input_tokens {token}': counted(120),
      'gen_ai.client.inference.usage.reasoning.output_tokens {token}': counted(10),
      'gen_ai.execute_tool.duration s': [
        {
          value: { sum: 2, count: 1 },
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': 'look',
          'gen_ai.agent.name': 'weather',
        },
      ],
      'gen_ai.invoke_agent.duration s': [{ value: { sum: 2, count: 1 }, ...run }],
      'gen_ai.invoke_agent.inference_calls {call}': [{ value: { sum: 2, count: 1 }, ...run }],
      'gen_ai.invoke_agent.tool_calls {call}': [{ value: { sum: 1, count: 1 }, ...run }],
    })
    await tracing.stop()
    await provider.shutdown()
  })

  it('continues where a provider throws, and reports it', async () => {
    const ledger = memoryLedger()
    await weatherOf(ledger).run()
    const reports: unknown[] = []
    const tracerProvider = {
      getTracer: () => ({
        startSpan: () => {
          throw new Error('full')
        },
        startActiveSpan: () => undefined as never,
      }),
    }
    const report = (error: unknown, what: string): number => reports.push([String(error), what])
    const tracing = traceRuns(ledger, { tracerProvider, from: 'start', report })
    await untilTraced(tracing, ledger)
    expect(reports).toEqual(Array.from({ length: 4 }, () => ['Error: full', 'A span was not exported']))
    await tracing.stop()
  })

  it('reports a cursor that is of another ledger', async () => {
    const reports: string[] = []
    const report = (_error: unknown, what: string): number => reports.push(what)
    await traceRuns(memoryLedger(), { after: 'elsewhere', report }).ended
    expect(reports).toEqual(['The ledger is traced no more'])
  })

  it.each([
    [{ tracerProvider: {} }, 'tracerProvider'],
    [{ meterProvider: 1 }, 'meterProvider'],
    [{ after: '' }, 'after'],
    [{ from: 'then' }, 'from'],
    [{ report: 'console' }, 'report'],
    [{ exporter: {} }, 'exporter'],
    [{ content: 'yes' }, 'content'],
  ])('refuses %j', (options, name) => {
    expect(() => traceRuns(memoryLedger(), options as never)).toThrow(name)
  })

  it.each([undefined, {}, 'runs.db'])('refuses %j for a ledger', (ledger) => {
    expect(() => traceRuns(ledger as never)).toThrow('traceRuns: the ledger is ')
  })

  it('reaches a receiver of OTLP through the official exporter', async () => {
    const bodies: unknown[] = []
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        bodies.push(JSON.parse(Buffer.concat(chunks).toString()))
        response.setHeader('content-type', 'application/json').end('{}')
      })
    })
    await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void receiver.close())
    const { port } = receiver.address() as AddressInfo
    const exporter = new OTLPTraceExporter({ url: `http://127.0.0.1:${port}/v1/traces` })
    const provider = new TracerProvider({
      spanProcessors: [new SimpleSpanProcessor({ exporter })],
      idGenerator: runIds(),
    })
    const ledger = memoryLedger()
    const runId = await weatherOf(ledger).run()
    const tracing = traceRuns(ledger, { tracerProvider: provider, from: 'start' })
    await untilTraced(tracing, ledger)
    await provider.forceFlush()
    await provider.shutdown()
    await tracing.stop()
    const received = (bodies as ExportRequest[])
      .flatMap(({ resourceSpans }) => resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans)
      .flatMap(({ spans }) => spans)
    const events = await Array.fromAsync(ledger.read(runId as never))
    const ids = toSpans(events).map(({ traceId, spanId, name }) => ({ traceId, spanId, name }))
    expect(
      received.map(({ traceId, spanId, name }) => ({ traceId, spanId, name })).toSorted(bySpanId),
    ).toEqual(ids.toSorted(bySpanId))
  })
})

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly spans: readonly { readonly traceId: string; readonly spanId: string; readonly name: string }[]
    }[]
  }[]
}
