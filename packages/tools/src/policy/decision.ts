import { option, requireOptions } from '@tallystick/core/kit'
import { all, fieldFits, type Finding } from './condition.ts'
import { fitsAny } from './pattern.ts'
import { requireRules } from './rules-check.ts'
import type { ApprovalRule, ApprovalRules, RuleDecision, RuledCall } from './rules.ts'

/** What rules decide about a call. */
export interface RuledDecision {
  readonly decision: RuleDecision
  /** The number of the rule that decided, from 1; absent where no rule fits. */
  readonly rule?: number
  /** Why, with the rule that says so: for the person who is asked, or the model whose call is denied. */
  readonly reason: string
}

/** It may say more of the call, such as its run. */
const ruledCall = option.valueThat(
  "a call with the name of its tool, as in { tool: 'pay', input: { amount: 5 } }",
  (value) => typeof Object(value).tool === 'string',
)

/**
 * Returns what the rules decide about a call: the first rule that matches decides. If a condition is undecided, a rule
 * that asks or denies matches, and one that allows does not, so a model gains nothing by leaving a field out or
 * changing its type. Throws a `ConfigurationError` for rules that are wrong, and for what is no call.
 */
export function decideByRules(rules: ApprovalRules, call: RuledCall): RuledDecision {
  requireRules(rules, 'decideByRules')
  requireOptions('decideByRules', ruledCall, call, 'the call')
  return decidedBy(rules, call)
}

/** The same for rules that were checked. */
export function decidedBy({ rules, otherwise = 'ask' }: ApprovalRules, call: RuledCall): RuledDecision {
  for (const [index, rule] of rules.entries()) {
    const found = ruleFits(rule, call)
    if (found === true || (found === 'undecided' && rule.decision !== 'allow')) {
      return { decision: rule.decision, rule: index + 1, reason: reasonOf(rule, index + 1, found) }
    }
  }
  return { decision: otherwise, reason: `No rule fits this call, and ${otherwise} is decided otherwise.` }
}

function ruleFits({ tool, agent, effect, input = {} }: ApprovalRule, call: RuledCall): Finding {
  return all([
    tool === undefined || fitsAny(tool, call.tool),
    agent === undefined || (call.agent === undefined ? 'undecided' : fitsAny(agent, call.agent)),
    effect === undefined || (call.effect === undefined ? 'undecided' : call.effect === effect),
    ...Object.entries(input).map(([path, condition]) => fieldFits(call.input, path, condition)),
  ])
}

function reasonOf({ name, why, decision }: ApprovalRule, number: number, found: Finding): string {
  const verdict =
    why ??
    { allow: 'The call is allowed.', ask: 'A person decides.', deny: 'The call is not allowed.' }[decision]
  const label = name === undefined ? `rule ${number}` : `rule ${number}, ${name}`
  return `${verdict} (${label}${found === 'undecided' ? '; a field of its condition is missing or of another type' : ''})`
}
