// What the other packages of Tallystick build on: the checks of options, the rules of agents, the details of runs.
export type {
  AgentRules,
  CompactionOptions,
  HandoffTarget,
  Handoffs,
  ModelTimeouts,
  TurnToPrepare,
} from './runtime/agent/agent.ts'
export { asPlainText as historyText } from './machine/history.ts'
export { type FoldHistoryOptions, foldHistory, foldedHistory } from './runtime/agent/fold-history.ts'
export { defaultHost, type Host } from './values/host.ts'
export type { GivenHooks, HookMoment, RunHooks } from './runtime/agent/hooks.ts'
export type {
  OutputPart,
  OutputStreamOptions,
  OutputTransform,
  OutputWriter,
} from './runtime/output/output-stream.ts'
export type { RecordedRun } from './runtime/definition/runtime-parts.ts'
export {
  type AskedTurn,
  ContextOfRecord,
  type ContextOption,
  definitionIn,
  definitionNow,
  type Preparing,
  rulesIn,
} from './runtime/definition/run-context.ts'
export { untilBegun } from './runtime/run/run.ts'
export type { InputMessage, RunInput } from './runtime/session/run-input.ts'
export type {
  ApprovalClaims,
  ApprovalTokenOptions,
  ApprovalTokens,
  IssueOptions,
  TokenDecision,
  TokenRefusal,
} from './runtime/run/approval-token.ts'
export type { PolicyCall, PolicyVerdict } from './runtime/agent/approval-policy.ts'
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
} from './runtime/agent/guardrail.ts'
export type { OutputMaskOptions, OutputTransformOptions } from './runtime/output/output-transform.ts'
export type { OutputReader, OutputSchema } from './runtime/schema/output-schema.ts'
export type { CommandAcknowledgement } from './runtime/commands/sent-commands.ts'
export type { ShownApproval } from './runtime/commands/approval-decision.ts'
export {
  type AgentTool,
  type AgentToolOptions,
  type ChildAnswer,
  type ChildTask,
  isAgentTool,
} from './runtime/definition/agent-tool.ts'
export type { HandoffOptions } from './runtime/definition/handoff.ts'
export { type RuntimeRules, someRules } from './runtime/agent/runtime-rules.ts'
export { reachableAgents, withRuntimeRules } from './runtime/definition/registered-agents.ts'
export { type CallChecker, type CheckContext, checkCalls } from './runtime/checks/call-check.ts'
export { answerVerdict } from './runtime/effects/check-effects.ts'
export { inputFaultOf } from './runtime/schema/recorded-schema.ts'
export type { ForkApproval, ForkEdit } from './runtime/fork/fork-edit.ts'
export type { ForkOptions } from './runtime/fork/fork.ts'
export {
  type ChangeOptions,
  type Changes,
  type Poll,
  caughtUp,
  changesOf,
  changesOfEveryRun,
} from './ledger/changes.ts'
export { type OpenLedger, requireLedger } from './ledger/ledger.ts'
export { calledModel, definedAgent } from './runtime/agent/part-check.ts'
export {
  type AnsweredRun,
  type EndedRun,
  type InterruptedRun,
  type StoppedRun,
  type SuspendedRun,
  resultOf,
  withChildren,
} from './runtime/reading/run-result.ts'
export { startOf } from './runtime/reading/load-state.ts'
export type { RunStep, StepCall } from './runtime/run/run-steps.ts'
export type { RunStreams } from './runtime/reading/run-streams.ts'
export { shownEvent } from './runtime/output/shown-event.ts'
export { type ShownText, type TextUpdate, nextShownText, noText } from './runtime/reading/text-updates.ts'
export { isRunDriven } from './runtime/run/run-driven.ts'
export type {
  Given,
  InContext,
  RuntimeSession,
  SendOptions,
  SessionRunOptions,
  SettledResult,
} from './runtime/run/runtime.ts'
export type { Session } from './runtime/session/session.ts'
export type { PastEdits, PastOptions } from './runtime/session/session-past.ts'
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
