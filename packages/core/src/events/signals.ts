import {
  type Outcome,
  outcome,
  type ProviderState,
  providerState,
  type ReasoningPart,
  replyPart,
  type ReplyPart,
  type RequestedCall,
  requestedCall,
  type ResultPart,
  resultPart,
  type StopReason,
  stopReason,
  type TextPart,
} from './content.ts'
import {
  type ChildTotals,
  type CollectedCall,
  type GuardedThing,
  type GuardrailAction,
  toolSpending,
  type ToolSpending,
} from './event-parts.ts'
import { type Approvers, approvers } from './event-parts.ts'
import type { ModelFailure } from '../values/errors.ts'
import type { ToolCallId } from '../values/ids.ts'
import type { Json, JsonObject } from '../values/json.ts'
import { type ModelRefusal, refusal } from './model-request.ts'
import { reportedUsage, type Usage } from './usage.ts'
import {
  amount,
  anything,
  count,
  exactly,
  flag,
  json,
  jsonObject,
  listOf,
  objectOf,
  maybe,
  type Schema,
  type ShapeOf,
  storable,
  text,
  valueThat,
  variantOf,
  wordOf,
} from '../values/schema.ts'

/** More of a part. `replaces`: the vendor took back what came of it before, and this is all of it. */
interface MoreText {
  readonly part: number
  readonly text: string
  readonly replaces?: true
}

/** Added by an agent's `outputStream`: the model's own text, where another text was shown. No adapter reports it. */
interface WrittenText {
  readonly written?: string
}

/** Parts of a reply as the model wrote them, where `outputStream` showed another text. No adapter reports them. */
interface WrittenParts {
  readonly written?: readonly ((TextPart | ReasoningPart) & { readonly part: number })[]
}

/**
 * A report of a model adapter while a reply streams. The order: at most one `model_started`, then deltas, calls
 * and usage, then exactly one `model_finished`; a failure is an error of the stream instead.
 */
export type ModelSignal =
  | {
      readonly type: 'model_started'
      readonly providerMessageId?: string
      readonly servedModel?: string
      /**
       * The parts of the request that the wire could not carry, and that were left out: one sentence each, without
       * payloads.
       */
      readonly warnings?: readonly string[]
    }
  | ({ readonly type: 'model_text' } & MoreText)
  | ({ readonly type: 'model_reasoning' } & MoreText)
  /** More of a call's input as raw JSON text. */
  | { readonly type: 'model_tool_input'; readonly part: number; readonly name: string; readonly text: string }
  /** A call is whole. Never sent for a call whose input was cut off. */
  | { readonly type: 'model_tool_request'; readonly part: number; readonly call: RequestedCall }
  /**
   * Totals of this call so far. `contextTokens` is present if a vendor bills several prompts for one call: the tokens
   * of the conversation including the reply, which are input and output of the last prompt alone. `raw` is the wire's
   * own object.
   */
  | {
      readonly type: 'model_usage'
      readonly usage: Usage
      readonly contextTokens?: number
      readonly raw?: Json
    }
  /**
   * The wire's proof that the reply ended. `parts` is the whole reply, in order, without calls that were cut off;
   * text and reasoning equal the deltas of the same `part`, put together.
   */
  | {
      readonly type: 'model_finished'
      readonly stopReason: StopReason
      readonly rawStopReason?: string
      readonly parts: readonly ReplyPart[]
      readonly providerMessageId?: string
      /** Where the provider keeps the conversation up to this reply, for a run that continues there. */
      readonly providerState?: ProviderState
      /** Of a reply that stopped as `refused`: the vendor's reason. */
      readonly refusal?: ModelRefusal
    }

/** A report of a model adapter, as `outputStream` shows it. */
export type StreamedSignal =
  | Exclude<ModelSignal, { readonly type: 'model_text' | 'model_reasoning' | 'model_finished' }>
  | (Extract<ModelSignal, { readonly type: 'model_text' | 'model_reasoning' }> & WrittenText)
  | (Extract<ModelSignal, { readonly type: 'model_finished' }> & WrittenParts)

/** A report of a running tool: any number of progress reports, then exactly one ending. */
export type ToolSignal =
  | {
      readonly type: 'tool_progressed'
      readonly data: Json
      /** A model call that the tool has made: it is charged to the run, and recorded even where progress is not. */
      readonly spent?: ToolSpending
    }
  /** The call will be settled later, by `runtime.settle`: this instead of an ending. */
  | { readonly type: 'tool_deferred'; readonly externalId: string; readonly deadlineMs?: number }
  | ({
      readonly type: 'tool_ended'
      readonly outcome: Outcome
      readonly content: readonly ResultPart[]
      /** The model reads this instead of `content`. */
      readonly projected?: readonly ResultPart[]
      /** The exception that made the call fail, for `host.report` and the record; the model does not see it. */
      readonly thrown?: unknown
    } & Retryable)

/** Says that the same call may succeed later. It is tried again only as its tool's retry policy allows. */
export interface Retryable {
  readonly retryable?: true
  /** How long the tool asks to wait, in milliseconds. */
  readonly retryAfterMs?: number
}

/** The result of checking a call against its tool, before anything runs. */
export type CallVerdict =
  | { readonly kind: 'run'; readonly reason?: string }
  | { readonly kind: 'ask'; readonly reason?: string; readonly approvers?: readonly Approvers[] }
  | {
      readonly kind: 'refuse'
      readonly outcome: 'invalid_input' | 'unknown_tool' | 'denied' | 'skipped'
      readonly text: string
      /** The exception of the check or the policy that refused, for `host.report`. */
      readonly thrown?: unknown
      /** Its stack, with its causes. It is recorded where the recording allows it; the model does not see it. */
      readonly error?: string
    }

/** An input that does not fit. `malformed` is present if it was not a JSON object; `input` is `{}` then. */
export interface UnfitInput {
  readonly toolCallId: ToolCallId
  readonly input: JsonObject
  readonly malformed?: { readonly text: string; readonly error: string }
}

export interface RepairedInput {
  readonly input: JsonObject
  /** The repairs, in words for the person who is asked and for the record. */
  readonly repairs: readonly string[]
  /** Something of the input is missing, so that a call which writes does not run without asking a person. */
  readonly isGuess?: boolean
}

/** A verdict with the runtime's facts about the tool; without those where no tool of that name was found. */
export interface CheckedCall extends Omit<
  CollectedCall,
  'name' | 'plan' | 'inputDigest' | 'reason' | 'approvers' | 'refusal'
> {
  readonly finds?: readonly GuardrailFind[]
  readonly verdict: CallVerdict
}

/** A guardrail's find, and the action that it takes. */
export interface GuardrailFind {
  readonly guardrail: string
  readonly action: GuardrailAction
  readonly detail?: string
  /** On input: the place of the message in the history, from 0. */
  readonly index?: number
  /** On a tool's output: its call. */
  readonly toolCallId?: ToolCallId
  readonly replacement?: readonly ResultPart[]
}

/** The outside world's answer about a call in doubt: it happened, it did not, or this is unknown. */
export type Reconciliation =
  | { readonly state: 'done'; readonly outcome: Outcome; readonly content: readonly ResultPart[] }
  | { readonly state: 'not_done' }
  | { readonly state: 'unknown' }

interface OfAttempt {
  readonly toolCallId: ToolCallId
  readonly attempt: number
}

/** Signals as the machine receives them: what an effect reported, and which effect that was. */
export type Signal =
  | (StreamedSignal & { readonly turn: number; readonly attempt: number })
  | {
      readonly type: 'model_failed'
      readonly turn: number
      readonly attempt: number
      readonly failure: ModelFailure
    }
  | { readonly type: 'calls_checked'; readonly turn: number; readonly calls: readonly CheckedCall[] }
  | (Exclude<ToolSignal, { readonly type: 'tool_ended' }> & OfAttempt)
  | ({
      readonly type: 'tool_ended'
      readonly outcome: Outcome
      readonly content: readonly ResultPart[]
      readonly projected?: readonly ResultPart[]
      /** The part of a result that is too long which the model reads. */
      readonly shown?: readonly ResultPart[]
      readonly durationMs: number
      readonly child?: ChildTotals
      readonly reused?: ToolCallId
      /** The stack of the exception that made the call fail, with its causes. */
      readonly error?: string
    } & OfAttempt &
      Retryable)
  /** Guardrails have checked the input of the event `place`, or the result of the turn `place`. */
  | {
      readonly type: 'guardrails_checked'
      readonly on: Exclude<GuardedThing, 'tool_input'>
      readonly place: number
      readonly guardrails: readonly string[]
      readonly finds: readonly GuardrailFind[]
    }
  /** The answer was checked against the schema: `output` is the parsed value, `error` what does not fit. */
  | {
      readonly type: 'output_checked'
      readonly turn: number
      readonly verdict:
        | { readonly valid: true; readonly output: Json }
        | { readonly valid: false; readonly error: string }
    }
  /** The answer of the model that sums up older history. */
  | {
      readonly type: 'summarized'
      readonly turn: number
      readonly usage?: Usage
      readonly answer: { readonly text: string } | { readonly failure: ModelFailure }
    }
  /** The outside world's answer about a call in doubt. */
  | { readonly type: 'call_reconciled'; readonly toolCallId: ToolCallId; readonly finding: Reconciliation }

const content = storable(listOf(resultPart))

const moreText: ShapeOf<MoreText> = { part: count, text, replaces: maybe(exactly(true)) }

/** The reports that a model adapter may give. */
export const modelSignalSchema: Schema<ModelSignal> = variantOf('type', {
  model_started: {
    providerMessageId: maybe(text),
    servedModel: maybe(text),
    warnings: maybe(listOf(text)),
  },
  model_text: moreText,
  model_reasoning: moreText,
  model_tool_input: {
    part: count,
    name: text,
    text,
  },
  model_tool_request: {
    part: count,
    call: storable(requestedCall),
  },
  model_usage: {
    usage: reportedUsage,
    contextTokens: maybe(amount),
    raw: maybe(json),
  },
  model_finished: {
    stopReason,
    rawStopReason: maybe(text),
    parts: storable(listOf(replyPart)),
    providerMessageId: maybe(text),
    providerState: maybe(providerState),
    refusal: maybe(refusal),
  },
})

/** The reports that a running tool may give. */
export const toolSignalSchema: Schema<ToolSignal> = variantOf('type', {
  tool_progressed: {
    data: json,
    spent: maybe(toolSpending),
  },
  tool_deferred: {
    externalId: text,
    deadlineMs: maybe(amount),
  },
  tool_ended: {
    outcome,
    content,
    projected: maybe(content),
    thrown: maybe(anything),
    retryable: maybe(exactly(true)),
    retryAfterMs: maybe(amount),
  },
})

/** The possible answers of a check. */
export const verdictSchema: Schema<CallVerdict> = variantOf('kind', {
  run: { reason: maybe(text) },
  ask: { reason: maybe(text), approvers: maybe(listOf(approvers)) },
  refuse: {
    outcome: wordOf(['invalid_input', 'unknown_tool', 'denied', 'skipped']),
    text,
    thrown: maybe(anything),
    error: maybe(text),
  },
})

const texts = listOf(text)

/** The possible answers of a tool's repair of an input that does not fit. */
export const repairedInputSchema: Schema<RepairedInput> = objectOf({
  input: storable(jsonObject),
  repairs: valueThat('texts, one at least', (value) => !texts(value) && (value as unknown[]).length > 0),
  isGuess: maybe(flag),
})

/** The possible answers about a call in doubt. */
export const reconciliationSchema: Schema<Reconciliation> = variantOf('state', {
  done: {
    // The other outcomes belong to calls that cannot have run.
    outcome: wordOf(['success', 'failed', 'cancelled']),
    content,
  },
  not_done: {},
  unknown: {},
})
