import type { Message } from './content.ts'
import type { JsonObject } from '../values/json.ts'
import type { ProviderState } from './provider-state.ts'
import type { ModelSettings } from './model-settings.ts'
import type { ToolChoice, ToolDefinition } from './tool-definition.ts'

/** The request of one model call. Folding the ledger up to `model_call_started` gives exactly the same request. */
export interface ModelRequest {
  readonly instructions: string
  /** The history. Every tool call in it has its result, in the next message. Never mutated: cache by identity. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
  readonly maxOutputTokens?: number
  /** How the model writes. An adapter leaves out settings that its wire cannot express, with a warning. */
  readonly modelSettings?: ModelSettings
  /**
   * The JSON Schema (2020-12) of the answer. An adapter lets the vendor enforce it. If the vendor cannot, or not this
   * schema, the adapter writes the schema into the instructions, and says so in the warnings of `model_started`: the
   * model always reads the schema. The runtime checks the answer in either case.
   */
  readonly outputSchema?: JsonObject
  /**
   * Where the provider keeps the conversation before these messages, which do not repeat it. Only for a model with
   * `keepsState`.
   */
  readonly providerState?: ProviderState
}
