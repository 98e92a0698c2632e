import * as z from 'zod'
import { providerState } from '../model/provider-state.ts'
import { refusal } from '../model/refusal-schema.ts'
import { outcome, replyContent, requestedCall, resultPart, stopReason } from '../model/content-schema.ts'
import { reportedUsage } from '../billing/billing-schema.ts'
import {
  amount,
  count,
  flag,
  json,
  jsonObject,
  objectOf,
  optional,
  text,
  variantOf,
} from '../values/schema.ts'
import { isJson } from '../values/json.ts'
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

/** One schema after the other: an intersection would merge copies of what both have read. */
const replyPart: z.ZodType<ReplyPart> = objectOf<{ readonly part: number }>({ part: count }).pipe(
  replyContent as unknown as z.ZodType<ReplyPart, { readonly part: number }>,
)

/** Fields that no schema names are kept, so they have to be JSON as well. */
function storable<T>(schema: z.ZodType<T>): z.ZodType<T> {
  return schema.refine(isJson, 'Invalid input: expected a JSON value')
}

const content = storable(z.array(resultPart))

const moreText = { part: count, text, replaces: optional(z.literal(true)) } as const

/** What a model adapter may report. */
export const modelSignalSchema: z.ZodType<ModelSignal> = variantOf<ModelSignal>({
  model_started: objectOf<ModelSignalOf<'model_started'>>({
    type: z.literal('model_started'),
    providerMessageId: optional(text),
    servedModel: optional(text),
    warnings: optional(z.array(text)),
  }),
  model_text: objectOf<ModelSignalOf<'model_text'>>({ type: z.literal('model_text'), ...moreText }),
  model_reasoning: objectOf<ModelSignalOf<'model_reasoning'>>({
    type: z.literal('model_reasoning'),
    ...moreText,
  }),
  model_tool_input: objectOf<ModelSignalOf<'model_tool_input'>>({
    type: z.literal('model_tool_input'),
    part: count,
    name: text,
    text,
  }),
  model_tool_request: objectOf<ModelSignalOf<'model_tool_request'>>({
    type: z.literal('model_tool_request'),
    part: count,
    call: storable(requestedCall),
  }),
  model_usage: objectOf<ModelSignalOf<'model_usage'>>({
    type: z.literal('model_usage'),
    usage: reportedUsage,
    contextTokens: optional(amount),
    raw: optional(json),
  }),
  model_finished: objectOf<ModelSignalOf<'model_finished'>>({
    type: z.literal('model_finished'),
    stopReason,
    rawStopReason: optional(text),
    parts: storable(z.array(replyPart)),
    providerMessageId: optional(text),
    providerState: optional(providerState),
    refusal: optional(refusal),
  }),
})

/** Whether a report is a sound piece of text, reasoning or tool input. Spares the most frequent reports the schema, which takes them all. */
export function isPlainPiece(signal: unknown): boolean {
  if (typeof signal !== 'object' || signal === null) return false
  const { type, part, text: more, name } = signal as Partial<ModelSignalOf<'model_tool_input'>>
  const isPiece = typeof more === 'string' && Number.isSafeInteger(part) && (part as number) >= 0
  if (!isPiece || 'replaces' in signal) return false
  const kind: unknown = type
  return (
    kind === 'model_text' ||
    kind === 'model_reasoning' ||
    (kind === 'model_tool_input' && typeof name === 'string')
  )
}

/** What a running tool may report. */
export const toolSignalSchema: z.ZodType<ToolSignal> = variantOf<ToolSignal>({
  tool_progressed: objectOf<ToolSignalOf<'tool_progressed'>>({
    type: z.literal('tool_progressed'),
    data: json,
  }),
  tool_deferred: objectOf<ToolSignalOf<'tool_deferred'>>({
    type: z.literal('tool_deferred'),
    externalId: text,
    deadlineMs: optional(amount),
  }),
  tool_ended: objectOf<ToolSignalOf<'tool_ended'>>({
    type: z.literal('tool_ended'),
    outcome,
    content,
    projected: optional(content),
    retryable: optional(z.literal(true)),
    retryAfterMs: optional(amount),
  }),
})

/** What checking a call may answer. */
export const verdictSchema: z.ZodType<CallVerdict> = z.union([
  objectOf<VerdictOf<'run'>>({ kind: z.literal('run') }),
  objectOf<VerdictOf<'ask'>>({ kind: z.literal('ask'), reason: optional(text) }),
  objectOf<VerdictOf<'refuse'>>({
    kind: z.literal('refuse'),
    outcome: z.enum(['invalid_input', 'unknown_tool', 'denied', 'skipped']),
    text,
  }),
])

/** What a tool may make of an input that does not fit. */
export const repairedInputSchema: z.ZodType<RepairedInput> = objectOf<RepairedInput>({
  input: storable(jsonObject),
  repairs: z.array(text).min(1),
  isGuess: optional(flag),
})

/** What asking the outside world about a call in doubt may answer. */
export const reconciliationSchema: z.ZodType<Reconciliation> = z.union([
  objectOf<FindingOf<'done'>>({
    // What an outcome of another kind says, a call that may have run cannot have ended in.
    state: z.literal('done'),
    outcome: z.enum(['success', 'failed', 'cancelled']),
    content,
  }),
  objectOf<FindingOf<'not_done'>>({ state: z.literal('not_done') }),
  objectOf<FindingOf<'unknown'>>({ state: z.literal('unknown') }),
])
