// Spans and metrics of OpenTelemetry, made of the events of runs.
export { conventionsCommit, type MetricName } from './conventions.ts'
export { type IdGenerator, runIds, type RunTracing, traceRuns, type TraceRunsOptions } from './trace-runs.ts'
export {
  type Measurement,
  toMeasurements,
  readSpans,
  type RecordedSpansOptions,
  toSpans,
  readTraceparent,
} from './recorded-spans.ts'
export { type OtlpAttribute, type OtlpSpan, type OtlpTraces, type OtlpValue, toOtlp } from './otlp.ts'
export type { ContentOption } from './content.ts'
export type { Attributes, AttributeValue, Span, SpanEvent, SpanLink } from './span.ts'
