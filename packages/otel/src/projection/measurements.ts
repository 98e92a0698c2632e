import { requireOptions } from '@tallystick/core/kit'
import { genAi, metrics, operations, own, type MetricName } from '../conventions/names.ts'
import { anySpan } from '../span/any-span.ts'
import type { Attributes, AttributeValue, Span } from '../span/span.ts'

/** A number that a metric takes in. */
export interface Measurement {
  readonly metric: MetricName
  readonly value: number
  readonly attributes: Attributes
}

/** Returns what a span that has ended adds to the metrics of the conventions: one projection makes both. */
export function measurementsOf(span: Span): readonly Measurement[] {
  requireOptions('measurementsOf', anySpan, span, 'the span')
  const { attributes } = span
  const operation = attributes[genAi.operation]
  if (operation === operations.chat) return ofChat(span)
  if (operation === operations.agent) return attributes[own.finishReason] === undefined ? [] : ofRun(span)
  // What was never started takes no time; and its tool may have any name that a model thinks of.
  return operation === operations.tool && attributes[own.attempts] !== undefined ? ofCall(span) : []
}

function ofChat(span: Span): readonly Measurement[] {
  const common = pick(span, genAi.operation, genAi.provider, genAi.requestModel, genAi.responseModel)
  const failed = { ...common, ...pick(span, genAi.errorType) }
  const counted = { ...common, [genAi.tokenModality]: 'unknown' }
  const tokens = (metric: MetricName, value: AttributeValue | undefined): readonly Measurement[] =>
    typeof value === 'number' ? [{ metric, value, attributes: counted }] : []
  const firstChunk = span.attributes[genAi.timeToFirstChunk]
  return [
    { metric: metrics.chatDuration, value: seconds(span), attributes: failed },
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

function ofRun(span: Span): readonly Measurement[] {
  const common = pick(span, genAi.operation, genAi.agent, genAi.requestModel)
  const failed = { ...common, ...pick(span, genAi.errorType) }
  return [
    { metric: metrics.agentDuration, value: seconds(span), attributes: failed },
    {
      metric: metrics.agentInferenceCalls,
      value: Number(span.attributes[own.modelCalls]),
      attributes: common,
    },
    { metric: metrics.agentToolCalls, value: Number(span.attributes[own.toolCalls]), attributes: common },
  ]
}

function ofCall(span: Span): readonly Measurement[] {
  const attributes = pick(span, genAi.operation, genAi.tool, genAi.agent, genAi.errorType)
  return [{ metric: metrics.toolDuration, value: seconds(span), attributes }]
}

function seconds({ startedAt, endedAt }: Span): number {
  return (endedAt - startedAt) / 1000
}

function pick({ attributes }: Span, ...names: readonly string[]): Attributes {
  return Object.fromEntries(
    names.flatMap((name) => (attributes[name] === undefined ? [] : [[name, attributes[name]]])),
  )
}
