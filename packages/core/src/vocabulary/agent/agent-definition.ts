import type { AgentPolicy } from './agent-policy.ts'
import type { ModelRef } from '../model/content.ts'
import type { Price, MaxWebSearches } from '../billing/price.ts'
import type { GuardedThing } from '../signals/event-parts.ts'
import type { JsonObject } from '../values/json.ts'
import type { ModelSettings } from '../model/model-settings.ts'
import type { RefusalPolicy } from '../model/refusal.ts'
import type { ToolDefinition } from '../model/tool-definition.ts'

/** A model that takes over, and what it costs. */
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
  /** On input: it looks while the model is at work already. */
  readonly beside?: true
}

/** What an answer has to be. */
export interface OutputDefinition {
  /** JSON Schema (2020-12), as models are asked for it: always one of an object. */
  readonly schema: JsonObject
  /** The answer is no object: it is the one field, `answer`, of the object that models are asked for. */
  readonly wrapped?: true
  /** How often the model may try again. */
  readonly maxRepairs: number
}

/** A tool that hands the conversation over, and whom to. */
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
 * What an agent tells its model, whole, so that the ledger alone can say what the model saw, and how its runs are
 * driven. Code and keys are not part of it. `digest` is SHA-256 over the canonical JSON of the rest, in hex.
 */
export interface AgentDefinition {
  readonly model: ModelRef
  readonly instructions: string
  readonly tools: readonly ToolDefinition[]
  readonly parallelToolCalls: boolean
  /** Output tokens of one reply at most. */
  readonly maxOutputTokens?: number
  /** How its models write; a run may say otherwise. */
  readonly modelSettings?: ModelSettings
  /** Web searches that the provider of `model` runs within one call at most; none where absent. */
  readonly maxWebSearches?: MaxWebSearches
  /** What the model costs; not part of the digest. */
  readonly price?: Price
  /** Models that take over when the one before them is given up, in order. */
  readonly fallbacks?: readonly FallbackModel[]
  /** Guardrails of input and output; their code is not part of it. */
  readonly guardrails?: readonly GuardrailDefinition[]
  /** What becomes of a refusal, where not what the vendor advises. */
  readonly onRefusal?: RefusalPolicy
  readonly output?: OutputDefinition
  readonly handoffs?: readonly HandoffDefinition[]
  readonly summarizer?: SummarizerDefinition
  /** How its runs are driven: limits, waits, and what its tools and adapters are set to. */
  readonly policy?: AgentPolicy
  readonly digest: string
}
