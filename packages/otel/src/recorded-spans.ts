import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { option, readStart, requireLedger, requireOptions } from '@tallystick/core/internal'
import { requireTextId } from '@tallystick/core/store-kit'
import type { EventOf, ToolCallId } from '@tallystick/core/vocabulary'
import { type ContentOption, holdsContent } from './content.ts'
import { RunSpans } from './run-spans.ts'
import {
  anySpan,
  type Attributes,
  type AttributeValue,
  toCallSpanId,
  findLineage,
  type Span,
  toTraceId,
} from './span.ts'
import { genAi, type MetricName, metrics, operations, own } from './conventions.ts'

type Start = EventOf<'run_started'>

/** Options of `readSpans`. */
export interface RecordedSpansOptions extends ContentOption {
  /** Read child runs, too. Default: `true`. */
  readonly withChildren?: boolean | undefined
}

const { fields, listOf, maybe, trueOrFalse, valueThat } = option

const spansOptions = fields<ContentOption>({ content: maybe(trueOrFalse) })
const recordedSpansOptions = fields<RecordedSpansOptions>({
  content: maybe(trueOrFalse),
  withChildren: maybe(trueOrFalse),
})
const eventSource = valueThat(
  'the events of runs, as in [ … ]; of a ledger, readSpans reads them itself',
  (value) => typeof value === 'object' && value !== null && Symbol.iterator in value,
)
const eventList = listOf(
  valueThat('an event, such as ledger.read yields', (value) => {
    const { runId, type } = Object(value) as Partial<RuntimeEvent>
    return typeof runId === 'string' && typeof type === 'string'
  }),
)
const anyCall = valueThat('a call, as in { runId, toolCallId }', (value) => {
  const { runId, toolCallId } = Object(value) as { readonly runId?: unknown; readonly toolCallId?: unknown }
  return typeof runId === 'string' && typeof toolCallId === 'string'
})

/**
 * Returns the spans that have ended, in the order in which they ended, from the events of one or more runs. The events
 * of each run have to begin with its first; runs may be interleaved. The ids are those of `traceRuns`. Pure.
 */
export function toSpans(events: Iterable<RuntimeEvent>, options: ContentOption = {}): readonly Span[] {
  requireOptions('toSpans', eventSource, events, 'the list of events')
  requireOptions('toSpans', spansOptions, options)
  const withContent = holdsContent(options)
  const all = [...events]
  requireOptions('toSpans', eventList, all, 'the list of events')
  const starts = new Map<string, Start>()
  for (const event of all) if (event.type === 'run_started') starts.set(event.runId, event)
  const folds = new Map<string, RunSpans>()
  return all.flatMap((event) => {
    const start = starts.get(event.runId)
    if (start === undefined) return []
    const fold = folds.get(event.runId) ?? new RunSpans(start, starts, withContent)
    folds.set(event.runId, fold)
    return fold.next(event).flatMap((move) => (move.type === 'ended' ? [move.span] : []))
  })
}

/**
 * Yields the ended spans of a recorded run and its child runs, each child run after its parent. Reads in constant
 * memory, and writes nothing.
 */
export async function* readSpans(
  ledger: Ledger,
  runId: RunId,
  options: RecordedSpansOptions = {},
): AsyncGenerator<Span> {
  requireLedger('readSpans', ledger)
  requireTextId('readSpans', runId)
  requireOptions('readSpans', recordedSpansOptions, options)
  const withContent = holdsContent(options)
  const { withChildren = true } = options
  const waiting: RunId[] = [runId]
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    yield* readSpansOfRun(ledger, next, { withContent, children: withChildren ? waiting : [] })
  }
}

/** Yields the spans of one run, and adds its child runs to `children`. */
async function* readSpansOfRun(
  ledger: Ledger,
  runId: RunId,
  { withContent, children }: { readonly withContent: boolean; readonly children: RunId[] },
): AsyncGenerator<Span> {
  let run: RunSpans | undefined
  for await (const event of ledger.read(runId)) {
    if (event.type === 'run_started') {
      run = new RunSpans(event, await readStartsBefore(ledger, event), withContent)
    }
    if (event.type === 'tool_started' && event.child && event.attempt === 1) children.push(event.child)
    for (const move of run?.next(event) ?? []) if (move.type === 'ended') yield move.span
  }
}

/** Returns the first events that determine the trace of a run: those of its parents, and of the run that it follows. */
export async function readStartsBefore(ledger: Ledger, start: Start): Promise<ReadonlyMap<string, Start>> {
  const starts = new Map<string, Start>([[start.runId, start]])
  for (let { parent } = start; parent !== undefined;) {
    const before = await readStart(ledger, parent.runId)
    if (before === undefined) break
    starts.set(parent.runId, before)
    parent = before.parent?.relation === 'child' ? before.parent : undefined
  }
  return starts
}

/**
 * Returns the `traceparent` of a call that is under way. A tool sends it with its requests, so that the service that
 * answers, such as an MCP server, continues the trace below the span of the call.
 */
export async function readTraceparent(
  ledger: Ledger,
  call: { readonly runId: RunId; readonly toolCallId: ToolCallId },
): Promise<string> {
  requireLedger('readTraceparent', ledger)
  requireOptions('readTraceparent', anyCall, call, 'the call')
  const { runId, toolCallId } = call
  const start = await readStart(ledger, runId)
  const { traceId, traceFlags } = start
    ? findLineage(start, await readStartsBefore(ledger, start)).trace
    : { traceId: toTraceId(runId), traceFlags: 1 }
  return `00-${traceId}-${toCallSpanId(runId, toolCallId)}-0${traceFlags}`
}

/** A number that a metric takes in. */
export interface Measurement {
  readonly metric: MetricName
  readonly value: number
  readonly attributes: Attributes
}

/** Returns what a span that has ended adds to the metrics of the conventions: one projection makes both. */
export function toMeasurements(span: Span): readonly Measurement[] {
  requireOptions('toMeasurements', anySpan, span, 'the span')
  const { attributes } = span
  const operation = attributes[genAi.operation]
  if (operation === operations.chat) return measureChat(span)
  if (operation === operations.agent)
    return attributes[own.finishReason] === undefined ? [] : measureRun(span)
  // A call that never started has no duration, and its tool may have any name that a model invents.
  return operation === operations.tool && attributes[own.attempts] !== undefined ? measureCall(span) : []
}

function measureChat(span: Span): readonly Measurement[] {
  const common = pick(span, genAi.operation, genAi.provider, genAi.requestModel, genAi.responseModel)
  const failed = { ...common, ...pick(span, genAi.errorType) }
  const counted = { ...common, [genAi.tokenModality]: 'unknown' }
  const tokens = (metric: MetricName, value: AttributeValue | undefined): readonly Measurement[] =>
    typeof value === 'number' ? [{ metric, value, attributes: counted }] : []
  const firstChunk = span.attributes[genAi.timeToFirstChunk]
  return [
    { metric: metrics.chatDuration, value: toSeconds(span), attributes: failed },
    ...(typeof firstChunk === 'number'
      ? [{ metric: metrics.chatTimeToFirstChunk, value: firstChunk, attributes: common }]
      : []),
    // A call that reported nothing counts as one without tokens, as the conventions ask.
    ...tokens(metrics.chatInputTokens, span.attributes[genAi.inputTokens] ?? 0),
    ...tokens(metrics.chatOutputTokens, span.attributes[genAi.outputTokens] ?? 0),
    ...tokens(metrics.chatCacheReadTokens, span.attributes[genAi.cacheReadTokens]),
    ...tokens(metrics.chatCacheWriteTokens, span.attributes[genAi.cacheWriteTokens]),
    ...tokens(metrics.chatReasoningTokens, span.attributes[genAi.reasoningTokens]),
  ]
}

function measureRun(span: Span): readonly Measurement[] {
  const common = pick(span, genAi.operation, genAi.agent, genAi.requestModel)
  const failed = { ...common, ...pick(span, genAi.errorType) }
  return [
    { metric: metrics.agentDuration, value: toSeconds(span), attributes: failed },
    {
      metric: metrics.agentInferenceCalls,
      value: Number(span.attributes[own.modelCalls]),
      attributes: common,
    },
    { metric: metrics.agentToolCalls, value: Number(span.attributes[own.toolCalls]), attributes: common },
  ]
}

function measureCall(span: Span): readonly Measurement[] {
  const attributes = pick(span, genAi.operation, genAi.tool, genAi.agent, genAi.errorType)
  return [{ metric: metrics.toolDuration, value: toSeconds(span), attributes }]
}

function toSeconds({ startedAt, endedAt }: Span): number {
  return (endedAt - startedAt) / 1000
}

function pick({ attributes }: Span, ...names: readonly string[]): Attributes {
  return Object.fromEntries(
    names.flatMap((name) => (attributes[name] === undefined ? [] : [[name, attributes[name]]])),
  )
}
