// Spans and metrics of OpenTelemetry, made of the events of runs.
export { conventionsCommit } from './conventions/names.ts'
export { recordedSpans, spansOf } from './projection/recorded-spans.ts'
export type { Attributes, AttributeValue, Span, SpanEvent, SpanLink } from './projection/span.ts'
