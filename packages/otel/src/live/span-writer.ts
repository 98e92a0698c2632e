import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type HrTime,
  type Span as ApiSpan,
  type Tracer,
} from '@opentelemetry/api'
import type { Attributes, Span, SpanMove, StartedSpan } from '../span/span.ts'
import { withIds } from './run-ids.ts'

/** Writes spans through a tracer, each begun when it begins and ended when it ends, with the times of its events. */
export class SpanWriter {
  readonly #tracer: Tracer
  readonly #open = new Map<string, ApiSpan>()

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  write(move: SpanMove): void {
    if (move.type === 'started') this.start(move.span)
    else this.#end(move.span)
  }

  start(span: StartedSpan): void {
    const { traceId, spanId, name, kind, startedAt } = span
    const options = {
      kind: kind === 'client' ? SpanKind.CLIENT : SpanKind.INTERNAL,
      startTime: timeOf(startedAt),
      attributes: ownAttributes(span.attributes),
      links: span.links.map((link) => ({
        context: { traceId: link.traceId, spanId: link.spanId, traceFlags: 1, isRemote: true },
        attributes: ownAttributes(link.attributes),
      })),
      root: span.parentSpanId === undefined,
    }
    const begun = withIds({ traceId, spanId }, () => this.#tracer.startSpan(name, options, this.#above(span)))
    this.#open.set(spanId, begun)
  }

  #end({ spanId, attributes, events, status, statusMessage, endedAt }: Span): void {
    const open = this.#open.get(spanId)
    if (open === undefined) return
    this.#open.delete(spanId)
    open.setAttributes(ownAttributes(attributes))
    for (const { name, at, attributes: ofEvent } of events)
      open.addEvent(name, ownAttributes(ofEvent), timeOf(at))
    if (status === 'error') {
      open.setStatus({
        code: SpanStatusCode.ERROR,
        ...(statusMessage !== undefined && { message: statusMessage }),
      })
    }
    open.end(timeOf(endedAt))
  }

  /** Forgets spans that this writer will not end: they are not exported. */
  forget(spanIds: Iterable<string>): void {
    for (const spanId of spanIds) this.#open.delete(spanId)
  }

  /** The span above: the one that was begun here, or that of another process by its id. */
  #above({ traceId, parentSpanId, traceFlags }: StartedSpan): Context {
    if (parentSpanId === undefined) return ROOT_CONTEXT
    const open = this.#open.get(parentSpanId)
    const context = open?.spanContext() ?? { traceId, spanId: parentSpanId, traceFlags, isRemote: true }
    return trace.setSpanContext(ROOT_CONTEXT, context)
  }
}

/** As seconds and nanoseconds: the SDK takes a small number of milliseconds for one since the process began. */
function timeOf(at: number): HrTime {
  return [Math.floor(at / 1000), (at % 1000) * 1_000_000]
}

function ownAttributes(attributes: Attributes): Record<string, string | number | boolean | string[]> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]),
  ) as Record<string, string | number | boolean | string[]>
}
