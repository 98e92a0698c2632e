import type { ToolEffect } from '@tallystick/core/vocabulary'

/** What becomes of a call: it runs as its tool decides, a person is asked, or it is denied. */
export type RuleDecision = 'allow' | 'ask' | 'deny'

/** A value that can be compared: of a field of an input. */
export type Scalar = string | number | boolean | null

/**
 * What a field of an input has to be. A scalar: exactly that. Otherwise all that is given has to hold. Where a field is
 * missing, or is of a type that cannot be compared so, the condition is undecided.
 */
export type InputCondition =
  | Scalar
  | {
      /** Exactly this. */
      readonly is?: Scalar
      /** Exactly one of these. */
      readonly oneOf?: readonly Scalar[]
      /** A text that fits one of the patterns, in which `*` stands for any text, also an empty one. */
      readonly like?: string | readonly string[]
      /** A number above this. */
      readonly above?: number
      /** A number from this on. */
      readonly atLeast?: number
      /** A number below this. */
      readonly below?: number
      /** A number up to this. */
      readonly atMost?: number
      /** Whether the field is there; `null` is there. */
      readonly present?: boolean
      /** The opposite of a condition. */
      readonly not?: InputCondition
      /** A list with at least one item that fits. */
      readonly some?: InputCondition
      /** A list of which every item fits. */
      readonly every?: InputCondition
    }

/** Which calls a rule is about, and what becomes of them. All that is given has to fit. */
export interface ApprovalRule {
  /** How people name the rule, in what is recorded and printed. */
  readonly name?: string
  /** Names of tools, or patterns of names, in which `*` stands for any text. */
  readonly tool?: string | readonly string[]
  /** Names of agents, or patterns of names. */
  readonly agent?: string | readonly string[]
  readonly effect?: ToolEffect
  /** Conditions on fields of the input, by their paths: `amount`, `to.country`, `lines.0.price`. */
  readonly input?: { readonly [path: string]: InputCondition }
  readonly decision: RuleDecision
  /** Said to the person who is asked, or to the model whose call is denied. */
  readonly why?: string
}

/** A call, and what has to become of it. */
export interface RuleExample {
  readonly call: RuledCall
  readonly decision: RuleDecision
}

/** A call as rules see it. */
export interface RuledCall {
  readonly tool: string
  readonly effect?: ToolEffect
  readonly agent?: string
  readonly input?: { readonly [name: string]: unknown }
}

/** An approval policy as data: the first rule that fits decides. */
export interface ApprovalRules {
  /** The version of this format. */
  readonly version: 1
  readonly rules: readonly ApprovalRule[]
  /** What becomes of a call that no rule fits; `ask` unless given. */
  readonly otherwise?: RuleDecision
  /** Calls with what has to become of them, which `checkExamples` tries. */
  readonly examples?: readonly RuleExample[]
}
