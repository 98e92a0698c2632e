// What an application needs: agents, runs, ledgers, errors. All else is in the other entries of this package.
export type { RunState } from './machine/state.ts'
export type { PendingApproval } from './machine/calls.ts'
export { memoryLedger } from './ledger/memory-ledger.ts'
export type { Clock } from './values/host.ts'
export type { Ledger } from './ledger/ledger.ts'
export type { Model } from './models/model.ts'
export type { Tool } from './tools/tool.ts'
export type { Agent, AgentOptions, PrepareTurn } from './agent/agent.ts'
export type { ApprovalPolicy } from './tools/check-calls.ts'
export { type Guardrail, defineGuardrail } from './tools/guardrails.ts'
export { outputMask, outputTransform } from './models/output-transform.ts'
export type { Prices } from './models/prices.ts'
export { approvalTokens } from './runtime/approval-tokens.ts'
export { agentTool } from './agent/agent-tool.ts'
export { defineAgent } from './agent/define-agent.ts'
export { handBack, handoff } from './agent/handoff.ts'
export type { RunResult } from './runtime/run-result.ts'
export { createRuntime } from './runtime/runtime.ts'
export type { Run } from './runtime/run.ts'
export type { ResumeOptions, RunOptions, Runtime, RuntimeOptions } from './runtime/runtime-options.ts'
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
