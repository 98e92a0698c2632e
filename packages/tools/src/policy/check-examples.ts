import { decidedBy, type RuledDecision } from './decision.ts'
import { requireRules } from './rules-check.ts'
import type { ApprovalRules, RuleExample } from './rules.ts'

/** An example with what the rules decide about its call. */
export interface CheckedExample {
  /** Its number, from 1. */
  readonly number: number
  readonly example: RuleExample
  readonly decided: RuledDecision
  /** Whether that is what the example demands. */
  readonly holds: boolean
}

/** Tries every example of the rules. Throws a `ConfigurationError` for rules that are wrong. */
export function checkExamples(rules: ApprovalRules): readonly CheckedExample[] {
  requireRules(rules, 'checkExamples')
  return (rules.examples ?? []).map((example, index) => {
    const decided = decidedBy(rules, example.call)
    return { number: index + 1, example, decided, holds: decided.decision === example.decision }
  })
}
