/** A value of an attribute. */
export type AttributeValue = string | number | boolean | readonly string[]

/** Facts by their names. */
export type Attributes = Readonly<Record<string, AttributeValue>>

/** Something that happened within a span. */
export interface SpanEvent {
  readonly name: string
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  readonly attributes: Attributes
}

/** A span of another trace that this one follows from. */
export interface SpanLink {
  readonly traceId: string
  readonly spanId: string
  readonly attributes: Attributes
}

/** Where a span is, when it is begun. Ids are lower-case hex digits: 32 of a trace, 16 of a span. */
export interface StartedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Absent at the root of a trace. */
  readonly parentSpanId?: string
  /** The flags that the caller's trace context came with: 0 means that it records nothing. */
  readonly traceFlags: number
  readonly runId: string
  /** `client`: a call of a model, which runs elsewhere. */
  readonly kind: 'internal' | 'client'
  readonly name: string
  /** Milliseconds since 1970 UTC, as all times here. */
  readonly startedAt: number
  readonly attributes: Attributes
  readonly links: readonly SpanLink[]
}

/** A span that has ended. */
export interface Span extends StartedSpan {
  readonly endedAt: number
  readonly events: readonly SpanEvent[]
  readonly status: 'unset' | 'error'
  /** In few words, and never content. */
  readonly statusMessage?: string
}

/** What an event means to a trace. Each span is started once, and ended once by the event after which it is known whole. */
export type SpanMove =
  | { readonly type: 'started'; readonly span: StartedSpan }
  | { readonly type: 'ended'; readonly span: Span }
