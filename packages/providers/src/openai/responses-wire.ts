import { isJsonObject } from '@tallystick/core/internal'
import type { JsonObject, Opaque } from '@tallystick/core/vocabulary'
import { readOpaqueData } from '../shared/reply.ts'

/** The name of this wire in `ModelRef` and `Opaque`. */
export const api = 'responses'

/** The response as lifecycle events show it. */
export interface WireResponse {
  readonly id?: string
  readonly model?: string
  readonly status?: string
  readonly output?: readonly JsonObject[]
  readonly usage?: JsonObject | null
  readonly tool_usage?: JsonObject | null
  readonly error?: JsonObject | null
  readonly incomplete_details?: JsonObject | null
}

/**
 * One event of the stream, all kinds in one loose shape:
 * - `response.created`, `.queued`, `.in_progress`: `response`; the last ones `response.completed`, `.incomplete`, `.failed`
 * - `response.output_item.added`, `.done`: `output_index`, `item`
 * - `response.content_part.added`: `output_index`, `content_index`, `part`
 * - deltas of text, refusals, reasoning and inputs: `output_index`, `content_index` or `summary_index`, `delta`
 * - `error`: the SDK throws it, other clients may hand it on
 */
export interface WireEvent {
  readonly type: string
  readonly sequence_number?: number
  readonly response?: WireResponse
  readonly output_index?: number
  readonly content_index?: number
  readonly summary_index?: number
  readonly item?: JsonObject
  readonly part?: JsonObject
  readonly delta?: unknown
  readonly text?: string
  readonly refusal?: string
  readonly arguments?: string
  readonly input?: string
  readonly error?: JsonObject
}

/** The body of `POST /v1/responses`. */
export interface WireRequest {
  readonly model: string
  readonly input: readonly JsonObject[]
  readonly stream: true
  readonly store: boolean
  readonly include?: readonly string[]
  readonly previous_response_id?: string
  readonly conversation?: string
  readonly [field: string]: unknown
}

/** A response that the service keeps. `seen` is a digest of the history before it. */
export interface KeptResponse extends JsonObject {
  readonly id: string
  readonly seen: string
  readonly conversation?: string
}

/**
 * The data of an `Opaque` of this wire: the item without what the part itself says, the fields of its piece of content,
 * the item's place in the reply, and where the service keeps the reply, if it does.
 */
export interface OpaqueData extends JsonObject {
  readonly item: JsonObject
  readonly at?: number
  readonly content?: JsonObject
  /** For a custom tool: the field that its text became. */
  readonly field?: string
  readonly kept?: KeptResponse
}

/** Reads the data of a part's `Opaque`; `undefined` for another wire or service. */
export function readOpaque(opaque: Opaque | undefined, provider: string): OpaqueData | undefined {
  const data = readOpaqueData(opaque, provider, api)
  return isJsonObject(data?.['item']) ? (data as OpaqueData) : undefined
}

export function toOpaque(provider: string, data: OpaqueData): Opaque {
  return { provider, api, data }
}

/** The kinds of output items that become calls. */
export const callKinds = [
  'function_call',
  'custom_tool_call',
  'mcp_approval_request',
  'shell_call',
  'apply_patch_call',
] as const
export type CallKind = (typeof callKinds)[number]

/** Tools that the vendor trained its models on, and that the application runs. */
export type NativeKind = 'shell' | 'apply_patch'

/** The native tool that an item calls, unless the vendor runs it in a container of its own. */
export function readNativeKind(item: JsonObject): NativeKind | undefined {
  if (item['type'] === 'apply_patch_call') return 'apply_patch'
  const environment = item['environment']
  const isHosted = isJsonObject(environment) && environment['type'] !== 'local'
  return item['type'] === 'shell_call' && !isHosted ? 'shell' : undefined
}

export function isCallKind(type: string | undefined): type is CallKind {
  return callKinds.some((kind) => kind === type)
}
