import type { ModelRef } from './content.ts'
import type { Price } from './price.ts'
import type { ToolDefinition } from './tool-definition.ts'

/** A model that takes over, and what it costs. */
export interface FallbackModel {
  readonly model: ModelRef
  readonly price?: Price
}

/**
 * What an agent tells its model, whole, so that the ledger alone can say what the model saw. Tool code, keys and
 * options of the adapter are not part of it. `digest` is SHA-256 over the canonical JSON of the rest, in hex.
 */
export interface AgentDefinition {
  readonly model: ModelRef
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  readonly parallelToolCalls: boolean
  /** Output tokens of one reply at most. */
  readonly maxOutputTokens?: number
  /** What the model costs; not part of the digest. */
  readonly price?: Price
  /** Models that take over when the one before them is given up, in order. */
  readonly fallbacks?: readonly FallbackModel[]
  readonly digest: string
}
