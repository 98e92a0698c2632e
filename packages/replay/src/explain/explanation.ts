import type { Message, RunId, Usage } from '@tallystick/core'
import type { FailureClass, ModelRef, RequestAddition, ToolChoice } from '@tallystick/core/vocabulary'

/** A message, and the events that made it. */
export interface MessageOrigin {
  readonly message: Message
  /** Numbers of the events that its content came from or passed through, ascending. */
  readonly seqs: readonly number[]
  /** Earlier messages of the history that this one replaces: a summary replaces what it sums up. */
  readonly replaced: readonly MessageOrigin[]
}

/** One thing that a request carries. */
export interface ExplainedItem {
  readonly kind: 'instructions' | 'tools' | 'output_schema' | 'message'
  /** The message, where it is one, and its place in the request, from 0. */
  readonly message?: Message
  readonly index?: number
  readonly seqs: readonly number[]
  /** An estimate of its input tokens. */
  readonly tokens: number
  /** Its share of what the input cost in US dollars, by its tokens; where the cost is known. */
  readonly costUsd?: number
  readonly replaced?: readonly ReplacedMessage[]
}

/** A message that a request does not carry, though the history once held it. */
export interface ReplacedMessage {
  readonly role: Message['role']
  readonly seqs: readonly number[]
  readonly tokens: number
  readonly replaced?: readonly ReplacedMessage[]
}

/** One attempt of a turn's model call. */
export interface ExplainedAttempt {
  readonly attempt: number
  /** Of its `model_call_started`. */
  readonly seq: number
  readonly model: ModelRef
  readonly outcome: 'answered' | 'cut_off' | 'failed' | 'under_way'
  readonly failure?: FailureClass
  /** What the provider counted, and what it cost in US dollars; where known. */
  readonly usage?: Usage
  readonly costUsd?: number
}

/** The request of a turn, and where each part of it came from. The request is that of the last attempt. */
export interface Explanation {
  readonly runId: RunId
  readonly turn: number
  readonly agent: string
  readonly model: ModelRef
  readonly requestDigest: string
  readonly toolChoice: ToolChoice
  /** What options of the model's adapter add to the request, or replace in it. Values are not on record. */
  readonly additions?: readonly RequestAddition[]
  readonly attempts: readonly ExplainedAttempt[]
  /** In the order in which a model is given them. */
  readonly items: readonly ExplainedItem[]
  /**
   * Messages that the turn did not show and nothing replaced: `prepareTurn` left them out, an edit removed them, or a
   * handoff left them out.
   */
  readonly leftOut: readonly ReplacedMessage[]
  /** Input tokens of the request: the sum of the estimates of its items, and the provider's count. */
  readonly tokens: { readonly estimated: number; readonly billed?: number }
}
