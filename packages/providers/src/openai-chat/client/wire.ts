import { isJsonObject } from '@tallystick/core/kit'
import type { Json, JsonObject, Opaque } from '@tallystick/core/vocabulary'

/** This wire, as `ModelRef` and `Opaque` name it. Whose service it is, an option says. */
export const api = 'chat'

/** A piece of a call: whichever of its fields the server repeats, or leaves out. */
export interface WireCallDelta extends JsonObject {
  readonly index?: number
  readonly id?: string
  readonly type?: string
  readonly function?: JsonObject
  readonly custom?: JsonObject
}

/**
 * One chunk of the stream. Servers leave out fields or set them to null, so code may rely only on the shape of the
 * fields that are there.
 */
export interface WireChunk {
  readonly id?: string
  readonly model?: string
  readonly choices?: readonly JsonObject[] | null
  readonly usage?: JsonObject | null
  readonly error?: unknown
  /** Groq, before it sent `usage` where others do. */
  readonly x_groq?: JsonObject
}

/** The body of `POST /v1/chat/completions`, as far as this adapter writes it. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly JsonObject[]
  readonly stream: true
  readonly [field: string]: unknown
}

/** Where a server shows its model's reasoning, which is where it wants it back. */
export type ReasoningField = 'reasoning_content' | 'reasoning' | 'thinking'

/** What an `Opaque` of this wire holds, each field where it applies. */
export interface OpaqueData extends JsonObject {
  /** Of reasoning: the field that it came in, and the signed pieces of it that some servers add. */
  readonly reasoning?: ReasoningField
  readonly details?: readonly Json[]
  /** Of the first part of a reply: fields of the whole message, which go back with it. */
  readonly message?: JsonObject
  /** Of text: it is a refusal. */
  readonly refusal?: boolean
  /** Of a call: the fields of it that only its server understands. */
  readonly call?: JsonObject
  /** Of a call of a custom tool: the field that its text became. */
  readonly field?: string
}

/** The fields of a part's `Opaque`, when it is of this wire and this service. */
export function readOpaque(
  opaque: { readonly provider: string; readonly api: string; readonly data: Json } | undefined,
  provider: string,
): OpaqueData | undefined {
  if (opaque === undefined || opaque.provider !== provider || opaque.api !== api) return undefined
  return isJsonObject(opaque.data) ? opaque.data : undefined
}

/** What a part carries, addressed to this wire of this service. */
export function toOpaque(provider: string, data: OpaqueData): Opaque {
  return { provider, api, data }
}
