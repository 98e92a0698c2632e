// What the other packages of Tallystick build on: the checks of options, the rules of agents, the details of runs.
export type { AgentRules, CompactionOptions, HandoffTarget, Handoffs, TurnToPrepare } from './agent/agent.ts'
export { asPlainText as historyText } from './machine/history.ts'
export { type FoldHistoryOptions, foldHistory, foldedHistory } from './agent/handoff.ts'
export { defaultHost, type Host } from './values/host.ts'
export type { GivenHooks, HookMoment, RunHooks } from './agent/hooks.ts'
export type { OutputPart, OutputStreamOptions, OutputTransform, OutputWriter } from './models/output.ts'
export type { ModelTimeouts } from './models/model.ts'
export {
  type AskedTurn,
  ContextOfRecord,
  type ContextOption,
  definitionIn,
  definitionNow,
  type Preparing,
  type RecordedRun,
  bindRules,
} from './agent/prepare-turn.ts'
export { untilBegun } from './runtime/run.ts'
export type { InputMessage, RunInput } from './runtime/start-run.ts'
export type {
  ApprovalClaims,
  ApprovalTokenOptions,
  ApprovalTokens,
  IssueOptions,
  TokenDecision,
  TokenRefusal,
} from './runtime/approval-tokens.ts'
export type { PolicyCall, PolicyVerdict } from './tools/check-calls.ts'
export {
  type GuardedCall,
  type GuardedInput,
  type GuardedOutput,
  type GuardedResult,
  type GuardrailContext,
  type GuardrailVerdict,
  type InputGuardrail,
  type OutputGuardrail,
  type ToolInputGuardrail,
  type ToolOutputGuardrail,
  guardrail,
  requireGuardrailNames,
} from './tools/guardrails.ts'
export type { OutputMaskOptions, OutputTransformOptions } from './models/output-transform.ts'
export type { OutputReader, OutputSchema } from './tools/tool-schema.ts'
export type { CommandAcknowledgement } from './runtime/commands.ts'
export type { ShownApproval } from './runtime/approvals.ts'
export {
  type AgentTool,
  type AgentToolOptions,
  type ChildAnswer,
  type ChildTask,
  isAgentTool,
} from './agent/agent-tool.ts'
export type { HandoffOptions } from './agent/handoff.ts'
export { type RuntimeRules, someRules } from './agent/registry.ts'
export { reachableAgents, withRuntimeRules } from './agent/registry.ts'
export { type CallChecker, type CheckContext, checkCalls } from './tools/check-calls.ts'
export { answerVerdict } from './runtime/effects.ts'
export { inputFaultOf } from './tools/tool-schema.ts'
export type { ForkApproval, ForkEdit } from './runtime/fork.ts'
export type { ForkOptions } from './runtime/fork.ts'
export {
  type ChangeOptions,
  type Changes,
  type Poll,
  caughtUp,
  changesOf,
  changesOfEveryRun,
} from './ledger/changes.ts'
export { type OpenLedger, requireLedger } from './ledger/ledger.ts'
export { calledModel, definedAgent } from './agent/agent.ts'
export {
  type AnsweredRun,
  type EndedRun,
  type InterruptedRun,
  type StoppedRun,
  type SuspendedRun,
  toResult,
  readResultWithChildren,
} from './runtime/run-result.ts'
export { readStart } from './runtime/run-result.ts'
export type { RunStep, StepCall } from './runtime/run-steps.ts'
export type { RunStreams } from './runtime/run-streams.ts'
export { shownEvent } from './models/output.ts'
export { type ShownText, type TextUpdate, nextShownText, noText } from './runtime/text-updates.ts'
export { isRunDriven } from './runtime/leases.ts'
export type {
  Given,
  InContext,
  RuntimeSession,
  SendOptions,
  SessionRunOptions,
  SettledResult,
} from './runtime/runtime-options.ts'
export type { Session } from './runtime/session.ts'
export type { PastEdits, PastOptions } from './runtime/session.ts'
export { differenceOf, legibleText, nearestNames, sentenceOfError } from './values/text.ts'
export * as option from './values/option.ts'
export {
  type OptionalCheck,
  type OptionCheck,
  type OptionChecks,
  type OptionFault,
  requireOptions,
} from './values/option.ts'
export { definitionInRun } from './events/agent-definition.ts'
export { getOwn, isJson, isJsonObject, omitUndefined, parsedFault, readJson } from './values/json.ts'
export { isSameSecret } from './values/digest.ts'
