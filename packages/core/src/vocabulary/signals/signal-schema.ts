import {
  amount,
  anyOf,
  anything,
  bothOf,
  count,
  exactly,
  flag,
  json,
  jsonObject,
  listOf,
  objectOf,
  optional,
  type Schema,
  schemaOf,
  storable,
  text,
  variantOf,
  wordOf,
} from '../values/schema.ts'
import { providerState } from '../model/provider-state.ts'
import { refusal } from '../model/refusal-schema.ts'
import { outcome, replyContent, requestedCall, resultPart, stopReason } from '../model/content-schema.ts'
import { reportedUsage } from '../billing/billing-schema.ts'
import { isListOf } from '../values/quick-check.ts'
import { zod } from '../zod/zod.ts'
import type {
  CallVerdict,
  ModelSignal,
  Reconciliation,
  RepairedInput,
  ReplyPart,
  ToolSignal,
} from './signal.ts'

type ModelSignalOf<T extends ModelSignal['type']> = Extract<ModelSignal, { readonly type: T }>
type ToolSignalOf<T extends ToolSignal['type']> = Extract<ToolSignal, { readonly type: T }>
type VerdictOf<T extends CallVerdict['kind']> = Extract<CallVerdict, { readonly kind: T }>
type FindingOf<T extends Reconciliation['state']> = Extract<Reconciliation, { readonly state: T }>

const replyPart: Schema<ReplyPart> = bothOf<ReplyPart>(
  objectOf<{ readonly part: number }>({ part: count }),
  replyContent,
)

const content = storable(listOf(resultPart))

const moreText = { part: count, text, replaces: optional(exactly(true)) } as const

/** What a model adapter may report. */
export const modelSignalSchema: Schema<ModelSignal> = variantOf<ModelSignal>({
  model_started: objectOf<ModelSignalOf<'model_started'>>({
    type: exactly('model_started'),
    providerMessageId: optional(text),
    servedModel: optional(text),
    warnings: optional(listOf(text)),
  }),
  model_text: objectOf<ModelSignalOf<'model_text'>>({ type: exactly('model_text'), ...moreText }),
  model_reasoning: objectOf<ModelSignalOf<'model_reasoning'>>({
    type: exactly('model_reasoning'),
    ...moreText,
  }),
  model_tool_input: objectOf<ModelSignalOf<'model_tool_input'>>({
    type: exactly('model_tool_input'),
    part: count,
    name: text,
    text,
  }),
  model_tool_request: objectOf<ModelSignalOf<'model_tool_request'>>({
    type: exactly('model_tool_request'),
    part: count,
    call: storable(requestedCall),
  }),
  model_usage: objectOf<ModelSignalOf<'model_usage'>>({
    type: exactly('model_usage'),
    usage: reportedUsage,
    contextTokens: optional(amount),
    raw: optional(json),
  }),
  model_finished: objectOf<ModelSignalOf<'model_finished'>>({
    type: exactly('model_finished'),
    stopReason,
    rawStopReason: optional(text),
    parts: storable(listOf(replyPart)),
    providerMessageId: optional(text),
    providerState: optional(providerState),
    refusal: optional(refusal),
  }),
})

/** A delta of text, reasoning or tool input, as an adapter reports it: the attempt is known only to who called the model. */
export type ReportedDelta = ModelSignalOf<'model_text' | 'model_reasoning' | 'model_tool_input'>

/**
 * Whether a report is a sound delta that adds to its part and replaces nothing. The schema accepts each of them, too: this spares
 * the most frequent reports its cost.
 */
export function isPlainDelta(signal: unknown): signal is ReportedDelta {
  if (typeof signal !== 'object' || signal === null) return false
  const { type, part, text: more, name } = signal as Partial<ModelSignalOf<'model_tool_input'>>
  const isSound = typeof more === 'string' && Number.isSafeInteger(part) && (part as number) >= 0
  if (!isSound || 'replaces' in signal) return false
  const kind: unknown = type
  return (
    kind === 'model_text' ||
    kind === 'model_reasoning' ||
    (kind === 'model_tool_input' && typeof name === 'string')
  )
}

/** What a running tool may report. */
export const toolSignalSchema: Schema<ToolSignal> = variantOf<ToolSignal>({
  tool_progressed: objectOf<ToolSignalOf<'tool_progressed'>>({
    type: exactly('tool_progressed'),
    data: json,
  }),
  tool_deferred: objectOf<ToolSignalOf<'tool_deferred'>>({
    type: exactly('tool_deferred'),
    externalId: text,
    deadlineMs: optional(amount),
  }),
  tool_ended: objectOf<ToolSignalOf<'tool_ended'>>({
    type: exactly('tool_ended'),
    outcome,
    content,
    projected: optional(content),
    thrown: optional(anything),
    retryable: optional(exactly(true)),
    retryAfterMs: optional(amount),
  }),
})

/** What checking a call may answer. */
export const verdictSchema: Schema<CallVerdict> = anyOf<CallVerdict>(
  objectOf<VerdictOf<'run'>>({ kind: exactly('run') }),
  objectOf<VerdictOf<'ask'>>({ kind: exactly('ask'), reason: optional(text) }),
  objectOf<VerdictOf<'refuse'>>({
    kind: exactly('refuse'),
    outcome: wordOf(['invalid_input', 'unknown_tool', 'denied', 'skipped']),
    text,
    thrown: optional(anything),
  }),
)

const isTexts = isListOf(text)

/** What a tool may make of an input that does not fit. */
export const repairedInputSchema: Schema<RepairedInput> = objectOf<RepairedInput>({
  input: storable(jsonObject),
  repairs: schemaOf(
    () => zod().array(text()).min(1),
    () => (value) => isTexts(value) && (value as readonly string[]).length > 0,
  ),
  isGuess: optional(flag),
})

/** What asking the outside world about a call in doubt may answer. */
export const reconciliationSchema: Schema<Reconciliation> = anyOf<Reconciliation>(
  objectOf<FindingOf<'done'>>({
    // What an outcome of another kind says, a call that may have run cannot have ended in.
    state: exactly('done'),
    outcome: wordOf(['success', 'failed', 'cancelled']),
    content,
  }),
  objectOf<FindingOf<'not_done'>>({ state: exactly('not_done') }),
  objectOf<FindingOf<'unknown'>>({ state: exactly('unknown') }),
)
