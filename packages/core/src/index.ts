// For applications: agents, runs, ledgers, errors. The other entries of this package have the rest.

// Agents
export {
  agentTool,
  type AgentTool,
  type AgentToolOptions,
  type ChildAnswer,
  type ChildTask,
} from './agent/agent-tool.ts'
export type {
  Agent,
  AgentOptions,
  CompactionOptions,
  Handoffs,
  HandoffTarget,
  PrepareTurn,
  TurnToPrepare,
} from './agent/agent.ts'
export { defineAgent } from './agent/define-agent.ts'
export {
  foldedHistory,
  foldHistory,
  type FoldHistoryOptions,
  handBack,
  handoff,
  type HandoffOptions,
} from './agent/handoff.ts'
export type { GivenHooks, HookMoment, RunHooks } from './agent/hooks.ts'
export type { RecordedRun } from './agent/prepare-turn.ts'
export { type RuntimeRules, withRuntimeRules } from './agent/registry.ts'

// Tools and guardrails
export type { ApprovalPolicy, PolicyCall, PolicyVerdict } from './tools/check-calls.ts'
export {
  defineGuardrail,
  type GuardedCall,
  type GuardedInput,
  type GuardedOutput,
  type GuardedResult,
  type Guardrail,
  type GuardrailContext,
  type GuardrailVerdict,
  type InputGuardrail,
  type OutputGuardrail,
  type ToolInputGuardrail,
  type ToolOutputGuardrail,
} from './tools/guardrails.ts'
export type { OutputSchema } from './tools/tool-schema.ts'
export type { Tool } from './tools/tool.ts'

// Models
export type { Model, ModelTimeouts } from './models/model.ts'
export {
  outputMask,
  type OutputMaskOptions,
  outputTransform,
  type OutputTransformOptions,
} from './models/output-transform.ts'
export type { OutputPart, OutputStreamOptions, OutputTransform, OutputWriter } from './models/output.ts'
export type { Prices } from './models/prices.ts'

// The runtime and its runs
export {
  type ApprovalClaims,
  type ApprovalTokenOptions,
  approvalTokens,
  type ApprovalTokens,
  type IssueOptions,
  type TokenDecision,
  type TokenRefusal,
} from './runtime/approval-tokens.ts'
export type { CommandAcknowledgement } from './runtime/commands.ts'
export type { Feedback } from './runtime/feedback.ts'
export type { DriveOptions, PostOptions, Rest, StartData } from './runtime/drive.ts'
export type { ForkApproval, ForkEdit, ForkOptions } from './runtime/fork.ts'
export type { PartialOutput } from './runtime/partial-output.ts'
export type {
  AnsweredRun,
  EndedRun,
  InterruptedRun,
  RunResult,
  StoppedRun,
  SuspendedRun,
} from './runtime/run-result.ts'
export type { RunStep, StepCall } from './runtime/run-steps.ts'
export type { LiveText, RunStreams, TextUpdate } from './runtime/run-streams.ts'
export type { Run, ShownApproval } from './runtime/run.ts'
export type {
  Given,
  InContext,
  ResumeOptions,
  RunOptions,
  Runtime,
  RuntimeOptions,
  RuntimeSession,
  ScheduleOptions,
  ScheduleRecord,
  SendOptions,
  SessionRunOptions,
  SettledResult,
  SignalOptions,
} from './runtime/runtime-options.ts'
export { createRuntime } from './runtime/runtime.ts'
export type { BranchOptions, SessionEditOptions } from './runtime/edit-session.ts'
export type { PastEdits, PastOptions, Session, SessionHistory } from './runtime/session.ts'
export type { InputMessage, OnInput, RunInput } from './runtime/start-run.ts'

// The ledger
export type { Ledger } from './ledger/ledger.ts'
export { memoryLedger } from './ledger/memory-ledger.ts'
export type { PendingApproval } from './machine/calls.ts'
export type { RunState } from './machine/state.ts'

// Events and messages
export { joinText, type Message } from './events/content.ts'
export type { RuntimeEvent } from './events/event.ts'
export type { Limits } from './events/limits.ts'
export type { ModelRequest } from './events/model-request.ts'
export type { Usage } from './events/usage.ts'

// Errors, and what a host gives
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
export type { Clock } from './values/host.ts'
export type { RunId } from './values/ids.ts'
