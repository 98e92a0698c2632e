import type { Usage } from '@tallystick/core'
import { omitUndefined, option, type Schema } from '@tallystick/core/internal'
import { computeDigest, type EventOf } from '@tallystick/core/vocabulary'
import { genAi, own } from './conventions.ts'

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

/** A change of a trace. Each span is started once, and ended once by the event after which it is known whole. */
export type SpanMove =
  | { readonly type: 'started'; readonly span: StartedSpan }
  | { readonly type: 'ended'; readonly span: Span }

/** A span that has ended. */
export const anySpan: Schema = option.valueThat('an ended span, such as readSpans yields', (value) => {
  const { attributes, startedAt, endedAt, events, links } = Object(value) as Partial<Span>
  return (
    typeof attributes === 'object' &&
    attributes !== null &&
    typeof startedAt === 'number' &&
    typeof endedAt === 'number' &&
    Array.isArray(events) &&
    Array.isArray(links)
  )
})

/** Longer names are cut: a model may ask for a tool by a name of any length. */
const maxName = 200

/** Half a surrogate pair is not text, and half of the receivers refuse NUL and its like in a name. */
// oxlint-disable-next-line no-control-regex
const unprintable = /[\u0000-\u001f\u007f-\u009f]/g

/** Returns a text from outside as a name, or an id: well formed, on one line, and not long. */
export function nameText<Text extends string | undefined>(text: Text): Text extends string ? string : Text {
  const cut = text !== undefined && text.length > maxName ? `${text.slice(0, maxName)}…` : text
  return cut?.toWellFormed().replace(unprintable, '\uFFFD') as Text extends string ? string : Text
}

/** Returns content as a receiver accepts it: well formed, without NUL, and cut if it is too long. */
export function toContentText(text: string, maxChars: number): string {
  const cut = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
  return cut.toWellFormed().replaceAll('\0', '\uFFFD')
}

/** Facts; some may be absent. */
export type MaybeAttributes = Readonly<Record<string, AttributeValue | undefined>>

/** Why a span ended in an error: its class, in few words, and never content. */
export interface SpanError {
  readonly type: string
  readonly message?: string
}

/** A new span, without the attributes that all spans of its run share. */
export interface NewSpan {
  readonly id: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind?: 'client'
  readonly at: number
  readonly attributes: MaybeAttributes
}

/** A span that has not ended yet. */
export class OpenSpan {
  #started: StartedSpan
  #attributes: Record<string, AttributeValue>
  #events: SpanEvent[] = []

  constructor(started: StartedSpan) {
    this.#started = started
    this.#attributes = { ...started.attributes }
  }

  get spanId(): string {
    return this.#started.spanId
  }

  /** The span as it is now. */
  get started(): StartedSpan {
    return { ...this.#started, attributes: { ...this.#attributes } }
  }

  /** Adds facts; an absent one changes nothing. */
  set(attributes: MaybeAttributes = {}): void {
    Object.assign(this.#attributes, keepKnown(attributes))
  }

  addEvent(at: number, name: string, attributes: MaybeAttributes): void {
    this.#events.push({ name, at, attributes: keepKnown(attributes) })
  }

  /** Lets it begin again, later: what came before belongs to another run. */
  beginAt(at: number): void {
    this.#started = { ...this.#started, startedAt: at }
    this.#events = []
  }

  end(endedAt: number, error?: SpanError): Span {
    if (error) this.set({ [genAi.errorType]: nameText(error.type) })
    return {
      ...this.started,
      endedAt,
      events: this.#events,
      status: error ? 'error' : 'unset',
      ...omitUndefined({ statusMessage: nameText(error?.message) }),
    }
  }
}

/** Facts that are there. Texts of any source are made fit for a name. */
function keepKnown(attributes: MaybeAttributes): Attributes {
  return omitUndefined(attributes) as Attributes
}

/** The tokens of a call, or of many. */
export function toUsageAttributes(usage: Usage): MaybeAttributes {
  return {
    [genAi.inputTokens]: usage.inputTokens,
    [genAi.outputTokens]: usage.outputTokens,
    [genAi.cacheReadTokens]: usage.cacheReadTokens,
    [genAi.cacheWriteTokens]: usage.cacheWriteTokens,
    [genAi.reasoningTokens]: usage.reasoningTokens,
  }
}

export function toCostAttributes(costUsd: number | undefined): MaybeAttributes {
  return { [own.costUsd]: costUsd }
}

/** The trace that a span belongs to, and the span above it. */
interface TraceContext {
  readonly traceId: string
  readonly parentSpanId?: string
  readonly traceFlags: number
}

/** The flag of a trace that is recorded. */
const sampled = 1

/** Returns the id of a span, from the run and the work that the span covers. The same facts always give the same id. */
export function toSpanId(runId: string, ...place: readonly (string | number)[]): string {
  const id = computeDigest([runId, ...place]).slice(0, 16)
  // Sixteen zeros mean no span.
  return id === noSpan ? '0000000000000001' : id
}

const noSpan = '0'.repeat(16)
const noTrace = '0'.repeat(32)

/** Returns the id of the span of a run. */
export function toRunSpanId(runId: string): string {
  return toSpanId(runId, 'run')
}

/**
 * Returns the id of the span of a call. If a child run does the work of the call, the id follows from the child run, so
 * that this run knows it, too.
 */
export function toCallSpanId(runId: string, toolCallId: string, child?: string): string {
  return child === undefined ? toSpanId(runId, 'call', toolCallId) : toSpanId(child, 'caller')
}

/** The trace of a run, and the run that it follows. */
export interface Lineage {
  readonly trace: TraceContext
  /** The run that it continues or was forked from, with the trace of that run. */
  readonly follows?: { readonly runId: string; readonly traceId: string; readonly relation: string }
}

/** The known first events of runs, by run id. */
export type RunStarts = ReadonlyMap<string, EventOf<'run_started'>>

type Start = EventOf<'run_started'>

/**
 * Returns the trace of a run. A child run is in the trace of its parent, below the call that started it. Any other run
 * has a trace of its own, with the id that the caller gave, or else the id of the run without dashes.
 */
export function findLineage(start: Start, starts: RunStarts): Lineage {
  const { parent } = start
  const trace = findTrace(start, starts)
  if (parent === undefined || parent.relation === 'child') return { trace }
  const before = starts.get(parent.runId)
  const traceId = before ? findTrace(before, starts).traceId : toTraceId(parent.runId)
  return { trace, follows: { runId: parent.runId, traceId, relation: parent.relation } }
}

function findTrace(start: Start, starts: RunStarts): TraceContext {
  if (start.parent?.relation !== 'child') return parseOwnTrace(start)
  const seen = new Set<string>()
  let top: Pick<Start, 'runId' | 'labels' | 'parent'> = start
  while (top.parent?.relation === 'child' && !seen.has(top.runId)) {
    seen.add(top.runId)
    const { runId } = top.parent
    // An unknown parent has the labels of its child runs.
    top = starts.get(runId) ?? { runId, ...(top.labels && { labels: top.labels }) }
  }
  const { traceId, traceFlags } = parseOwnTrace(top)
  return { traceId, traceFlags, parentSpanId: toSpanId(start.runId, 'caller') }
}

/** Callers give a `traceparent` or the id of a trace. Any other text is a name of its own. */
function parseOwnTrace({ runId, labels }: Pick<Start, 'runId' | 'labels'>): TraceContext {
  const given = labels?.traceId ?? ''
  const isTraceId = /^[\da-f]{32}$/.test(given) && given !== noTrace
  const own: TraceContext = { traceId: isTraceId ? given : toTraceId(runId), traceFlags: sampled }
  return parseTraceparent(given) ?? own
}

/** Reads a `traceparent` of W3C Trace Context; `undefined` for any other text. */
function parseTraceparent(text: string): TraceContext | undefined {
  const [, version, traceId = '', parentSpanId = '', flags = '', more = ''] =
    /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== '')) return undefined
  if (traceId === noTrace || parentSpanId === noSpan) return undefined
  return { traceId, parentSpanId, traceFlags: Number.parseInt(flags, 16) & sampled }
}

/** Returns the id of the trace that a run has of its own. */
export function toTraceId(runId: string): string {
  return runId.replaceAll('-', '')
}
