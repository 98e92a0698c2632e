// Approval policies as data: rules that allow, ask or deny by tool, agent, effect and input.
export { approvalRules } from './policy/approval-rules.ts'
export { checkExamples, type CheckedExample } from './policy/check-examples.ts'
export { decideByRules, type RuledDecision } from './policy/decision.ts'
export { readApprovalRules } from './policy/read-rules.ts'
export type {
  ApprovalRule,
  ApprovalRules,
  InputCondition,
  RuleDecision,
  RuledCall,
  RuleExample,
  Scalar,
} from './policy/rules.ts'
