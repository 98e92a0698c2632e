import type { Message } from './content.ts'
import type { JsonObject } from '../values/json.ts'
import type { ProviderState } from './provider-state.ts'
import type { ModelSettings } from './model-settings.ts'
import type { ToolChoice, ToolDefinition } from './tool-definition.ts'

/** What one model call carries. A fold of the ledger up to `model_call_started` gives it again, to the letter. */
export interface ModelRequest {
  readonly instructions: string
  /** The history. Every tool call in it has its result, in the next message. Never mutated: cache by identity. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
  readonly maxOutputTokens?: number
  /** How the model is to write. What the wire cannot take of it, an adapter leaves out, with a warning. */
  readonly modelSettings?: ModelSettings
  /**
   * The answer has to be JSON of this schema (2020-12). An adapter hands it to the vendor's own way of holding a model to
   * a schema. Where the vendor has none, or cannot take this schema, the adapter writes the schema into the instructions
   * that it sends, and says so in the warnings of `model_started`: the model always reads what it has to write. The
   * runtime checks the answer in either case.
   */
  readonly outputSchema?: JsonObject
  /** Where the provider keeps what was said before these messages, which hold none of it. Only a model with `keepsState` has it. */
  readonly providerState?: ProviderState
}
