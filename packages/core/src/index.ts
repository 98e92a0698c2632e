// What an application needs: agents, runs, ledgers, errors. All else is in the other entries of this package.
export type { RunState } from './machine/state.ts'
export type { PendingApproval } from './machine/calls.ts'
export { memoryLedger } from './ledger/memory-ledger.ts'
export type { Clock } from './values/host.ts'
export type { Ledger } from './ledger/ledger.ts'
export type { Model } from './models/model.ts'
export type { Tool } from './tools/tool.ts'
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
export type { Usage } from './events/usage.ts'
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
} from './values/errors.ts'
export type { RuntimeEvent } from './events/event.ts'
export type { Limits } from './events/limits.ts'
export { type Message, textOf } from './events/content.ts'
export type { ModelRequest } from './events/model-request.ts'
export type { RunId } from './values/ids.ts'
