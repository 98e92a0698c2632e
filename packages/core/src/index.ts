// What an application needs: agents, runs, ledgers, errors. All else is in the other entries of this package.
export type { RunState } from './machine/state/state.ts'
export type { PendingApproval } from './machine/laws/tally.ts'
export { memoryLedger } from './memory-ledger/memory-ledger.ts'
export type { Clock } from './ports/clock.ts'
export type { Ledger } from './ports/ledger.ts'
export type { Model } from './ports/model.ts'
export type { Tool } from './ports/tool.ts'
export type { Agent, AgentOptions, PrepareTurn } from './runtime/agent/agent.ts'
export type { ApprovalPolicy } from './runtime/agent/approval-policy.ts'
export { type Guardrail, defineGuardrail } from './runtime/agent/guardrail.ts'
export { outputMask, outputTransform } from './runtime/output/output-transform.ts'
export type { Prices } from './runtime/agent/price-check.ts'
export { approvalTokens } from './runtime/run/approval-token.ts'
export { agentTool } from './runtime/definition/agent-tool.ts'
export { defineAgent } from './runtime/definition/define-agent.ts'
export { handBack, handoff } from './runtime/definition/handoff.ts'
export type { RunResult } from './runtime/reading/run-result.ts'
export { createRuntime } from './runtime/run/create-runtime.ts'
export type { Run } from './runtime/run/run.ts'
export type { ResumeOptions, RunOptions, Runtime, RuntimeOptions } from './runtime/run/runtime.ts'
export type { Usage } from './vocabulary/billing/usage.ts'
export {
  ConfigurationError,
  IllegalTransitionError,
  LawBrokenError,
  LedgerConflictError,
  LedgerDamagedError,
  LedgerUnavailableError,
  ProviderError,
  RunNotFoundError,
  TallystickError,
  UnknownEventError,
} from './vocabulary/errors.ts'
export type { RuntimeEvent } from './vocabulary/events/event.ts'
export type { Limits } from './vocabulary/limits/limits.ts'
export { type Message, textOf } from './vocabulary/model/content.ts'
export type { ModelRequest } from './vocabulary/model/model-request.ts'
export type { RunId } from './vocabulary/values/ids.ts'
