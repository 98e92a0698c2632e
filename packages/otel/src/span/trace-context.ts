import type { EventOf } from '@tallystick/core/vocabulary'
import { digestOf } from '@tallystick/core/vocabulary'

/** The trace that a span belongs to, and the span above it. */
export interface TraceContext {
  readonly traceId: string
  readonly parentSpanId?: string
  readonly traceFlags: number
}

/** The flag of a trace that is recorded. */
const sampled = 1

/** Returns the id of a span, from the run and what the span is of. The same facts always give the same id. */
export function spanIdOf(runId: string, ...place: readonly (string | number)[]): string {
  const id = digestOf([runId, ...place]).slice(0, 16)
  // Sixteen zeros mean no span.
  return id === noSpan ? '0000000000000001' : id
}

const noSpan = '0'.repeat(16)
const noTrace = '0'.repeat(32)

/** Returns the id of the span of a run. */
export function runSpanId(runId: string): string {
  return spanIdOf(runId, 'run')
}

/**
 * Returns the id of the span of a call. If a child run does the work of the call, the id follows from the child run, so
 * that this run knows it, too.
 */
export function callSpanId(runId: string, toolCallId: string, child?: string): string {
  return child === undefined ? spanIdOf(runId, 'call', toolCallId) : spanIdOf(child, 'caller')
}

/** The trace of a run, and the run that it follows. */
export interface Lineage {
  readonly trace: TraceContext
  /** The run that it continues or was forked from, with the trace of that run. */
  readonly follows?: { readonly runId: string; readonly traceId: string; readonly relation: string }
}

/** The first events of runs, by the ids of the runs, as far as they are known. */
export type RunStarts = ReadonlyMap<string, EventOf<'run_started'>>

type Start = EventOf<'run_started'>

/**
 * Returns the trace of a run. A child run is in the trace of its parent, below the call that started it. Any other run
 * has a trace of its own, with the id that the caller gave, or else the id of the run without dashes.
 */
export function lineageOf(start: Start, starts: RunStarts): Lineage {
  const { parent } = start
  const trace = traceOf(start, starts)
  if (parent === undefined || parent.relation === 'child') return { trace }
  const before = starts.get(parent.runId)
  const traceId = before ? traceOf(before, starts).traceId : traceIdOf(parent.runId)
  return { trace, follows: { runId: parent.runId, traceId, relation: parent.relation } }
}

function traceOf(start: Start, starts: RunStarts): TraceContext {
  if (start.parent?.relation !== 'child') return ownTrace(start)
  const seen = new Set<string>()
  let top: Pick<Start, 'runId' | 'labels' | 'parent'> = start
  while (top.parent?.relation === 'child' && !seen.has(top.runId)) {
    seen.add(top.runId)
    const { runId } = top.parent
    // An unknown parent has the labels of its child runs.
    top = starts.get(runId) ?? { runId, ...(top.labels && { labels: top.labels }) }
  }
  const { traceId, traceFlags } = ownTrace(top)
  return { traceId, traceFlags, parentSpanId: spanIdOf(start.runId, 'caller') }
}

/** What the caller gave as the trace: a `traceparent`, or the id of a trace. Any other text is a name of its own. */
function ownTrace({ runId, labels }: Pick<Start, 'runId' | 'labels'>): TraceContext {
  const given = labels?.traceId ?? ''
  const isTraceId = /^[\da-f]{32}$/.test(given) && given !== noTrace
  const own: TraceContext = { traceId: isTraceId ? given : traceIdOf(runId), traceFlags: sampled }
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
export function traceIdOf(runId: string): string {
  return runId.replaceAll('-', '')
}
