import type { ModelRef } from '../model/content.ts'
import type { JsonObject } from '../values/json.ts'
import type { Limits, RetryPolicy } from '../limits/limits.ts'
import type { Recovery, ToolEffect } from '../model/tool-definition.ts'

/** How calls of a tool are treated. */
export interface ToolPolicy {
  readonly name: string
  readonly effect: ToolEffect
  readonly recovery: Recovery
  readonly timeoutMs?: number
  /** When a person is asked about its calls, in its own words. */
  readonly approval?: string
}

/** What the adapter of a model is set to. */
export interface PinnedModel {
  readonly model: ModelRef
  /** As the adapter tells it: where it calls, the conversation that a service keeps, how the model is to work; no keys. */
  readonly options: JsonObject
}

/**
 * How the runs of an agent are driven, beside what its models are told. It stands in the definition, so that a resume by
 * code that says otherwise is found (`onDrift`). Policies that are functions are not part of it, but that there are any.
 */
export interface AgentPolicy {
  readonly limits: Limits
  readonly retry?: Partial<RetryPolicy>
  readonly timeouts?: { readonly idleMs?: number; readonly totalMs?: number }
  readonly compaction?: { readonly contextTokensMax: number; readonly keepMessages: number }
  readonly tools?: readonly ToolPolicy[]
  /** The agent has an approval policy of its own. */
  readonly approval?: true
  readonly models?: readonly PinnedModel[]
}
