import { isJsonObject } from '@tallystick/core/kit'
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { Json, JsonObject, Opaque } from '@tallystick/core/vocabulary'

/** This wire, as `ModelRef` and `Opaque` name it. The provider is whatever the model says that it is. */
export const api = 'ai-sdk'

/** What the model is asked with. */
export type WireCall = LanguageModelV4CallOptions
/** A message of the prompt. */
export type WireMessage = WireCall['prompt'][number]
/** A piece of what it answers. Version 3 says the same but for files. */
export type WirePart = LanguageModelV4StreamPart

/** What the provider says of a part beside its text, by the provider's name; it goes back on the same part. */
export type WireMetadata = { readonly [provider: string]: JsonObject }

/** What an `Opaque` of this wire holds. `part` is there where the AI SDK has a part that we have no word for. */
export type OpaqueData = JsonObject & {
  readonly metadata?: WireMetadata
  readonly part?: JsonObject
}

/** Returns the state in a part's `Opaque` that came from this provider; `undefined` for that of another one. */
export function readOpaque(opaque: Opaque | undefined, provider: string): OpaqueData | undefined {
  if (opaque === undefined || opaque.provider !== provider || opaque.api !== api) return undefined
  return isJsonObject(opaque.data) ? opaque.data : undefined
}

/** A value as JSON has it: what it cannot carry is left out, and bytes become base64. */
export function asJson(value: unknown): Json {
  const text = JSON.stringify(value, (_, field: unknown) =>
    field instanceof Uint8Array
      ? btoa(Array.from(field, (byte) => String.fromCharCode(byte)).join(''))
      : field,
  )
  return text === undefined ? null : (JSON.parse(text) as Json)
}

/** Returns an object as JSON; `undefined` for a value that is no object, or is empty. */
export function asJsonObject(value: unknown): JsonObject | undefined {
  const json = asJson(value)
  return isJsonObject(json) && Object.keys(json).length > 0 ? json : undefined
}
