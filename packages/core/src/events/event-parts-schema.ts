import {
  amount,
  numberFrom,
  count,
  exactly,
  flag,
  jsonObject,
  listOf,
  objectOf,
  maybe,
  ordinal,
  type Schema,
  text,
  valueThat,
  variantOf,
  wordOf,
} from '../values/schema.ts'
import { money, usage, type UsageField, usageFields } from './usage.ts'
import { type Message, message, modelRef, outcome, toolCallId, writtenContent } from './content.ts'
import { modelSettings, recoveries, type ToolChoice, toolEffects } from './model-request.ts'
import { toolDefinition } from './agent-definition.ts'
import {
  callPlans,
  type CallRefusal,
  type ChildTotals,
  type CollectedCall,
  forkWrites,
  type Handoff,
  isMoment,
  type ParentRef,
  type ReplyDelta,
  type ShownChange,
  type ShownMessages,
  type ShownPiece,
  type Spending,
  type ToolSpending,
  type WrittenPart,
} from './event-parts.ts'
import { failureClasses, type ModelFailure } from '../values/errors.ts'
import { parseRunId, type RunId } from '../values/ids.ts'
import { type Grant, repeats, retry } from './limits.ts'

/** The id of a run. */
export const runId: Schema<RunId> = valueThat(
  'a run id',
  (value) => typeof value === 'string' && parseRunId(value) !== undefined,
)
/** Milliseconds since 1970. */
export const moment: Schema<number> = valueThat('milliseconds of the years 0 to 9999', isMoment, {
  showsText: true,
})

/** An amount that was used or granted. */
const spent = numberFrom(0)
/** What a model call or a child run may use. */
export const grant: Schema<Grant> = objectOf<Grant>({
  turns: maybe(spent),
  toolCalls: maybe(spent),
  tokens: maybe(spent),
  inputTokens: maybe(spent),
  outputTokens: maybe(spent),
  costUsd: maybe(spent),
  webSearches: maybe(spent),
  durationMs: maybe(spent),
})
/** The run that a run was made from. */
export const parent: Schema<ParentRef> = objectOf<ParentRef>({
  runId,
  seq: count,
  relation: wordOf(['fork', 'child', 'session', 'branch']),
  writes: maybe(wordOf(forkWrites)),
  grant: maybe(grant),
})
/** What an attempt used. */
export const spending: Schema<Spending> = objectOf<Spending>({ usage, costUsd: maybe(money) })
/** What a tool used of a model. */
export const toolSpending: Schema<ToolSpending> = objectOf<ToolSpending>({
  model: modelRef,
  usage,
  costUsd: maybe(money),
})
/** Names of amounts of a usage. */
export const usageFieldNames: Schema<readonly UsageField[]> = listOf(wordOf(usageFields))
/** A failed model call, as data. */
export const failure: Schema<ModelFailure> = objectOf<ModelFailure>({
  class: wordOf(failureClasses),
  message: text,
  retryable: flag,
  retryAfterMs: maybe(amount),
  status: maybe(amount),
  requestId: maybe(text),
})
/** Which tools a model may ask for. */
export const toolChoice: Schema<ToolChoice> = variantOf<ToolChoice>({
  auto: objectOf<{ readonly type: 'auto' }>({ type: exactly('auto') }),
  any: objectOf<{ readonly type: 'any' }>({ type: exactly('any') }),
  none: objectOf<{ readonly type: 'none' }>({ type: exactly('none') }),
  tool: objectOf<{ readonly type: 'tool'; readonly name: string }>({ type: exactly('tool'), name: text }),
})
/** A call that a reply asks for, and what happens to it. */
export const collectedCall: Schema<CollectedCall> = objectOf<CollectedCall>({
  toolCallId,
  name: text,
  plan: wordOf(callPlans),
  inputDigest: text,
  effect: maybe(wordOf(toolEffects)),
  recovery: maybe(wordOf(recoveries)),
  retry: maybe(retry),
  serial: maybe(text),
  maxConcurrency: maybe(amount),
  repeats: maybe(repeats),
  reason: maybe(text),
  child: maybe(text),
  input: maybe(jsonObject),
  repairs: maybe(listOf(text)),
  recorded: maybe(toolCallId),
  handoff: maybe(objectOf<Handoff>({ to: text, back: maybe(exactly(true)) })),
  refusal: maybe(objectOf<CallRefusal>({ outcome, text, error: maybe(text) })),
})
/** A delta of a reply. */
export const replyDelta: Schema<ReplyDelta> = objectOf<ReplyDelta>({
  attempt: ordinal,
  part: count,
  text,
  replaces: maybe(exactly(true)),
  written: maybe(text),
})

/** A part of a reply as the model wrote it. */
export const writtenPart: Schema<WrittenPart> = objectOf<WrittenPart>({
  index: count,
  part: writtenContent,
})

/** The totals of a child run. Amounts below 0 are invalid: no provider pays back. */
export const childTotals: Schema<ChildTotals> = objectOf<ChildTotals>({
  runId,
  turns: count,
  toolCalls: count,
  usage,
  costUsd: maybe(money),
  estimated: maybe(exactly(true)),
})

/** A range of the history or messages: checked as one object, so that a fault names its place. */
const shownPiece = objectOf<{
  readonly from?: number
  readonly to?: number
  readonly messages?: readonly Message[]
}>({
  from: maybe(count),
  to: maybe(count),
  messages: maybe(listOf(message)),
}) as Schema<ShownPiece>

/** What a turn showed of its own. */
export const shownChange: Schema<ShownChange> = objectOf<ShownChange>({
  instructions: maybe(text),
  tools: maybe(listOf(text)),
  sourced: maybe(listOf(toolDefinition)),
  shown: maybe(objectOf<ShownMessages>({ digest: text, pieces: listOf(shownPiece) })),
  messages: maybe(listOf(message)),
  modelSettings: maybe(modelSettings),
  parallelToolCalls: maybe(flag),
  maxOutputTokens: maybe(amount),
})
