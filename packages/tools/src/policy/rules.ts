import type { ToolEffect } from '@tallystick/core/vocabulary'

/** The decision about a call: it runs as its tool decides, it needs an approval, or it is denied. */
export type RuleDecision = 'allow' | 'ask' | 'deny'

/** A value that can be compared: of a field of an input. */
export type Scalar = string | number | boolean | null

/**
 * A condition on a field of an input. A scalar has to be equal. Otherwise every given condition has to hold. If the
 * field is missing, or has a type that cannot be compared, the condition is undecided.
 */
export type InputCondition =
  | Scalar
  | {
      /** Exactly this. */
      readonly is?: Scalar | undefined
      /** Exactly one of these. */
      readonly oneOf?: readonly Scalar[] | undefined
      /** A text that fits one of the patterns, in which `*` stands for any text, also an empty one. */
      readonly like?: string | readonly string[] | undefined
      /** A number above this. */
      readonly above?: number | undefined
      /** A number of at least this. */
      readonly atLeast?: number | undefined
      /** A number below this. */
      readonly below?: number | undefined
      /** A number of at most this. */
      readonly atMost?: number | undefined
      /** Whether the field is there; `null` is there. */
      readonly present?: boolean | undefined
      /** The opposite of a condition. */
      readonly not?: InputCondition | undefined
      /** A list with at least one item that fits. */
      readonly some?: InputCondition | undefined
      /** A list of which every item fits. */
      readonly every?: InputCondition | undefined
    }

/** Which calls a rule applies to, and its decision. All given filters must match. */
export interface ApprovalRule {
  /** The name of the rule, for records and output. */
  readonly name?: string | undefined
  /** Names of tools, or patterns of names, in which `*` stands for any text. */
  readonly tool?: string | readonly string[] | undefined
  /** Names of agents, or patterns of names. */
  readonly agent?: string | readonly string[] | undefined
  readonly effect?: ToolEffect | undefined
  /** Conditions on fields of the input, by their paths: `amount`, `to.country`, `lines.0.price`. */
  readonly input?: { readonly [path: string]: InputCondition } | undefined
  readonly decision: RuleDecision
  /** A reason for the approver, or for the model whose call is denied. */
  readonly why?: string | undefined
}

/** A call, and the decision that the rules have to make about it. */
export interface RuleExample {
  readonly call: RuledCall
  readonly decision: RuleDecision
}

/** A call as rules see it. */
export interface RuledCall {
  readonly tool: string
  readonly effect?: ToolEffect | undefined
  readonly agent?: string | undefined
  readonly input?: { readonly [name: string]: unknown } | undefined
}

/** An approval policy as data: the first rule that fits decides. */
export interface ApprovalRules {
  /** The version of this format. */
  readonly version: 1
  readonly rules: readonly ApprovalRule[]
  /** The decision about a call that no rule matches. Default: `ask`. */
  readonly otherwise?: RuleDecision | undefined
  /** Calls with their expected decisions, which `checkExamples` tries. */
  readonly examples?: readonly RuleExample[] | undefined
}
