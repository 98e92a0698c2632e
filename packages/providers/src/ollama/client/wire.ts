import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/** This wire, as `ModelRef` names it. */
export const provider = 'ollama'
export const api = 'chat'

/**
 * One line of the stream. Every field may lack, whatever the vendor's types say:
 * - `message`: what is new. `content` and `thinking` are increments, `tool_calls` holds whole calls, one or several a line
 * - `done`: this is the last line, the proof that the reply is whole; it has `done_reason` and the counts
 * - `prompt_eval_count`, `eval_count`: tokens of the prompt and of the reply
 */
export type WireLine = JsonObject & {
  readonly model?: string
  readonly message?: JsonObject
  readonly done?: boolean
  readonly done_reason?: string
}

/** A call in a message of the history. */
export interface WireCall extends JsonObject {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: JsonObject }
}

/** A message of the history. */
export interface WireMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string
  readonly thinking?: string
  /** Base64, without a media type. */
  readonly images?: readonly string[]
  readonly tool_calls?: readonly WireCall[]
  readonly tool_name?: string
  readonly tool_call_id?: string
}

/** How the model is asked to think: not, as it likes, or how hard. */
export type WireThinking = boolean | 'low' | 'medium' | 'high' | 'max'

/** The body of `POST /api/chat`, as far as this adapter writes it. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly WireMessage[]
  readonly stream: true
  /** Whether the server may drop what does not fit into the context, and say nothing. */
  readonly truncate: boolean
  /** Whether the server may forget the beginning when the reply reaches the end of the context. */
  readonly shift: boolean
  readonly tools?: readonly JsonObject[]
  readonly think?: WireThinking
  readonly format?: Json
  readonly keep_alive?: string | number
  readonly options: JsonObject
  readonly [field: string]: unknown
}
