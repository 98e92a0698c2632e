import type { ApprovalPolicy } from '@tallystick/core'
import type { ApprovalRules } from './rules.ts'
import { decidedBy } from './decision.ts'
import { requireRules } from './rules-check.ts'

/**
 * Returns an approval policy from rules: give it to `defineAgent` or `createRuntime` as `approval`. As every policy it
 * may ask for more than a tool does, never for less. The reason of an approval request or a denial names the rule, and
 * is recorded. Throws a `ConfigurationError` that names the place where the rules are wrong.
 */
export function approvalRules(given: ApprovalRules): ApprovalPolicy {
  requireRules(given, 'approvalRules')
  const rules = structuredClone(given)
  return ({ name: tool, agent, effect, input }) => {
    const { decision, reason } = decidedBy(rules, { tool, agent, effect, input })
    if (decision === 'allow') return 'run'
    return decision === 'ask' ? { ask: reason } : { deny: `${reason} Nothing was run.` }
  }
}
