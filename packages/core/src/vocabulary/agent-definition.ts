import type { ModelRef } from './content.ts'
import type { ToolDefinition } from './tool-definition.ts'

/**
 * What an agent tells its model, whole, so that the ledger alone can say what the model saw. Tool code, keys and
 * options of the adapter are not part of it. `digest` is SHA-256 over the canonical JSON of the rest, in hex.
 */
export interface AgentDefinition {
  readonly model: ModelRef
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  readonly parallelToolCalls: boolean
  readonly digest: string
}
