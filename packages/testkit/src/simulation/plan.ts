import type { Limits } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import type { Random, StopReason } from '@tallystick/core/vocabulary'
import type { CrashPoint } from './faults.ts'

/** An agent as data: what its model says, how its tools behave, what happens to it from outside. */
export interface Program {
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
  readonly cancelAtSeq: number | undefined
  readonly inputs: readonly { readonly atSeq: number; readonly delivery: 'steer' | 'queue' }[]
  /**
   * The answers to the first, second … approval; `late` approves when the time to decide may be over, `stand` also what comes
   * later.
   */
  readonly decisions: readonly ('approve' | 'deny' | 'edit' | 'late' | 'stand')[]
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

const aSeed = option.valueThat('a finite number', Number.isFinite)

/** Random numbers that are the same for the same seed (mulberry32). For tests: predictable by design. */
export function seededRandom(seed: number): Random {
  requireOptions('seededRandom', aSeed, seed, 'the seed')
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
