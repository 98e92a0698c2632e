import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace'
import type { Ledger } from '@tallystick/core'
import { runIds, type RunTracing, type Span } from '@tallystick/otel'

/** A provider of the SDK that keeps what is exported. */
export function memoryTracer(withRunIds = true): {
  readonly provider: TracerProvider
  readonly spans: () => readonly ReadableSpan[]
} {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
    ...(withRunIds && { idGenerator: runIds() }),
  })
  return { provider, spans: () => exporter.getFinishedSpans() }
}

/** The same of metrics. */
export function memoryMeter(): {
  readonly provider: MeterProvider
  /** What each metric has taken in: a sum or, of a histogram, a sum and a count. */
  readonly sums: () => Promise<Readonly<Record<string, readonly unknown[]>>>
} {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 })
  const provider = new MeterProvider({ readers: [reader] })
  return {
    provider,
    sums: async () => {
      await provider.forceFlush()
      const scopes = exporter.getMetrics().at(-1)?.scopeMetrics ?? []
      return Object.fromEntries(
        scopes
          .flatMap(({ metrics }) => metrics)
          .map(({ descriptor, dataPoints }) => [
            `${descriptor.name} ${descriptor.unit}`,
            dataPoints.map(({ value, attributes }) => {
              const { sum, count } = Object(value) as { readonly sum?: number; readonly count?: number }
              return { value: sum === undefined ? value : { sum, count }, ...attributes }
            }),
          ]),
      )
    },
  }
}

/** A span as the SDK exports it, in the form in which the projection has it. */
export function exportedSpan(span: ReadableSpan): Omit<Span, 'runId' | 'traceFlags'> {
  const { traceId, spanId } = span.spanContext()
  const parentSpanId = span.parentSpanContext?.spanId
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    kind: span.kind === SpanKind.CLIENT ? 'client' : 'internal',
    name: span.name,
    startedAt: millisecondsOf(span.startTime),
    endedAt: millisecondsOf(span.endTime),
    attributes: span.attributes as Span['attributes'],
    events: span.events.map(({ name, time, attributes = {} }) => ({
      name,
      at: millisecondsOf(time),
      attributes: attributes as Span['attributes'],
    })),
    links: span.links.map(({ context, attributes = {} }) => ({
      traceId: context.traceId,
      spanId: context.spanId,
      attributes: attributes as Span['attributes'],
    })),
    status: span.status.code === SpanStatusCode.ERROR ? 'error' : 'unset',
  }
}

/** The same of the projection. */
export function projectedSpan({
  runId: _run,
  traceFlags: _flags,
  ...span
}: Span): Omit<Span, 'runId' | 'traceFlags'> {
  return span
}

function millisecondsOf([seconds, nanoseconds]: readonly [number, number]): number {
  return seconds * 1000 + nanoseconds / 1_000_000
}

/** Resolves when all events that a ledger has now are traced. */
export async function untilTraced(tracing: RunTracing, ledger: Ledger): Promise<void> {
  let last: string | undefined
  for await (const { cursor } of ledger.tail()) last = cursor
  while (tracing.cursor !== last) await new Promise<void>((resolve) => void setImmediate(resolve))
}
