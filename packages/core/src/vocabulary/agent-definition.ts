import type { ModelRef } from './content.ts'
import type { Price } from './price.ts'
import type { GuardedThing } from './event-parts.ts'
import type { JsonObject } from './json.ts'
import type { ToolDefinition } from './tool-definition.ts'

/** A model that takes over, and what it costs. */
export interface FallbackModel {
  readonly model: ModelRef
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
  /** JSON Schema (2020-12). */
  readonly schema: JsonObject
  /** How often the model may try again. */
  readonly repairsMax: number
}

/** A tool that hands the conversation over, and whom to. */
export interface HandoffDefinition {
  readonly tool: string
  readonly to: string
  /** To whoever started the run. */
  readonly back?: true
}

/** The model that sums up older history, and what it is told. */
export interface SummarizerDefinition extends FallbackModel {
  readonly instructions: string
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
  /** Guardrails that look at what goes in and out; their code is not part of it. */
  readonly guardrails?: readonly GuardrailDefinition[]
  readonly output?: OutputDefinition
  readonly handoffs?: readonly HandoffDefinition[]
  readonly summarizer?: SummarizerDefinition
  readonly digest: string
}
