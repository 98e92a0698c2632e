// Spans and metrics of OpenTelemetry, made of the events of runs.
export { conventionsCommit, type MetricName } from './conventions/names.ts'
export { type IdGenerator, runIds } from './live/run-ids.ts'
export { type RunTracing, traceRuns, type TraceRunsOptions } from './live/trace-runs.ts'
export { type Measurement, measurementsOf } from './projection/measurements.ts'
export { type OtlpAttribute, type OtlpSpan, type OtlpTraces, type OtlpValue, toOtlp } from './otlp/to-otlp.ts'
export type { ContentOption } from './content/capture.ts'
export {
  recordedSpans,
  type RecordedSpansOptions,
  spansOf,
  traceparentOf,
} from './projection/recorded-spans.ts'
export type { Attributes, AttributeValue, Span, SpanEvent, SpanLink } from './span/span.ts'
