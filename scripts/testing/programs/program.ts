import type { Limits } from '@tallystick/core'
import type { StopReason } from '@tallystick/core/vocabulary'
import type { CrashPoint } from '@tallystick/testkit'
import type { People } from '../../../packages/testkit/src/properties/random-trouble.ts'

/** An agent as data: what its model says, how its tools behave, what happens to it from outside. */
export interface Program extends People {
  readonly steps: readonly Step[]
  readonly limits: Limits
  readonly compaction:
    | {
        readonly maxContextTokens: number
        readonly keepMessages: number
        /** How older messages are summed up: by a function, by a model, or not at all. */
        readonly by: 'function' | 'model' | 'nobody'
      }
    | undefined
  readonly guardrails: readonly GuardrailPlan[]
  /** True if the answer has to be JSON. */
  readonly structured: boolean
  readonly crashes: readonly CrashPoint[]
  /** The first process that sees the event of this number is drained. */
  readonly drainAtSeq?: number | undefined
  /** Whom the run is about. */
  readonly subject?: string | undefined
  /** True if another model takes over where the first one fails for good, or refuses. */
  readonly fallback?: boolean
  readonly randomness: number
  /** True if time advances at every reading of the clock, and not only when all wait for it. */
  readonly ticking?: boolean
}

/** A guardrail, and what it says of everything. */
export interface GuardrailPlan {
  readonly on: 'input' | 'output' | 'tool_input' | 'tool_output'
  readonly beside: boolean
  readonly says: 'pass' | 'block' | 'replace' | 'record' | 'throw' | 'hang'
}

/** One reply of the model. */
export interface Step {
  readonly text: string
  readonly reasoning: string
  readonly calls: readonly CallPlan[]
  readonly stopReason: StopReason | undefined
  /** Attempts that fail before one succeeds, and how. */
  readonly failures: readonly (
    | 'overloaded'
    | 'network'
    | 'truncated'
    | 'authentication'
    | 'context_overflow'
    | 'interrupted'
  )[]
  /** The provider says nothing of what its replies used. */
  readonly unreported?: boolean
}

/** A call, and what its tool does with it. */
export interface CallPlan {
  readonly tool: string
  readonly behaviour: 'succeed' | 'throw' | 'flake' | 'hang' | 'progress' | 'defer' | 'invalid' | 'malformed'
}
