import type { AgentPolicy } from './agent-policy.ts'
import type { ModelRef } from '../model/content.ts'
import type { Price, MaxWebSearches } from '../billing/price.ts'
import type { GuardedThing } from '../signals/event-parts.ts'
import type { JsonObject } from '../values/json.ts'
import type { ModelSettings } from '../model/model-settings.ts'
import type { RefusalPolicy } from '../model/refusal.ts'
import type { ToolDefinition } from '../model/tool-definition.ts'

/** A fallback model, and its price. */
export interface FallbackModel {
  readonly model: ModelRef
  /** Web searches that its provider runs within one call at most; none where absent. */
  readonly maxWebSearches?: MaxWebSearches
  readonly price?: Price
}

/** A guardrail as the ledger names it. */
export interface GuardrailDefinition {
  readonly name: string
  readonly on: GuardedThing
  /** Of an input guardrail: it checks in parallel with the model call. */
  readonly beside?: true
}

/** The schema of the answer. */
export interface OutputDefinition {
  /** The JSON Schema (2020-12) that models get: always of an object. */
  readonly schema: JsonObject
  /**
   * Present if the answer is not an object: then models are asked for an object with it as the only field, `answer`.
   */
  readonly wrapped?: true
  /** How often the model may repair its answer. */
  readonly maxRepairs: number
}

/** A handoff tool, and the agent that it hands over to. */
export interface HandoffDefinition {
  readonly tool: string
  readonly to: string
  /** The conversation goes to the caller that started the run. */
  readonly back?: true
}

/** The model that sums up older history, and its instructions. */
export interface SummarizerDefinition extends FallbackModel {
  readonly instructions: string
}

/**
 * Everything that an agent tells its model, so that the ledger alone shows what the model saw, and how its runs are
 * driven. Code and keys are not part of it. `digest` is SHA-256 over the canonical JSON of the rest, in hex.
 */
export interface AgentDefinition {
  readonly model: ModelRef
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  readonly parallelToolCalls: boolean
  /** Output tokens of one reply at most. */
  readonly maxOutputTokens?: number
  /** How its models write, unless the run has settings of its own. */
  readonly modelSettings?: ModelSettings
  /** Web searches that the provider of `model` runs within one call at most; none where absent. */
  readonly maxWebSearches?: MaxWebSearches
  /** The price of the model; not part of the digest. */
  readonly price?: Price
  /** The fallback models, in order. */
  readonly fallbacks?: readonly FallbackModel[]
  /** Guardrails of input and output; their code is not part of it. */
  readonly guardrails?: readonly GuardrailDefinition[]
  /** What follows a refusal, if not what the vendor advises. */
  readonly onRefusal?: RefusalPolicy
  readonly output?: OutputDefinition
  readonly handoffs?: readonly HandoffDefinition[]
  readonly summarizer?: SummarizerDefinition
  /** How its runs are driven: limits, waits, and what its tools and adapters are set to. */
  readonly policy?: AgentPolicy
  readonly digest: string
}
