// Vocabulary: what is said in a ledger.
export { acceptsNull, withoutAddedNulls } from './vocabulary/added-nulls.ts'
export * from './vocabulary/agent-definition.ts'
export type { AgentPolicy, PinnedModel, ToolPolicy } from './vocabulary/agent-policy.ts'
export type { AnyContext } from './vocabulary/any-context.ts'
export { causes, type Cause } from './vocabulary/cause.ts'
export type * from './vocabulary/citation.ts'
export * from './vocabulary/content.ts'
export * from './vocabulary/event.ts'
export * from './vocabulary/event-catalogue.ts'
export { idFaultOf, type IdFault } from './vocabulary/event-ids.ts'
export { eventSchemas } from './vocabulary/event-schema.ts'
export * from './vocabulary/failure.ts'
export { grantFields, limitOfField, type Grant, type GrantField } from './vocabulary/grant.ts'
export * from './vocabulary/ids.ts'
export * from './vocabulary/json.ts'
export { keysIn, withoutKeys, type TextSpan } from './vocabulary/key-shapes.ts'
export { knownSecrets, secretLengthMin, type KnownSecrets } from './vocabulary/known-secrets.ts'
export * from './vocabulary/limits.ts'
export * from './vocabulary/model-request.ts'
export { isMoment } from './vocabulary/moment.ts'
export type { ModelSettings, ProviderOptions } from './vocabulary/model-settings.ts'
export { present } from './vocabulary/present.ts'
export * from './vocabulary/price.ts'
export type { ModelRefusal, RefusalPolicy } from './vocabulary/refusal.ts'
export * from './vocabulary/signal.ts'
export * from './vocabulary/command.ts'
export * from './vocabulary/tool-definition.ts'
export * from './vocabulary/usage.ts'

// Ports: what the runtime needs of others.
export * from './ports/clock.ts'
export * from './ports/ledger.ts'
export * from './ports/model.ts'
export * from './ports/tool.ts'

export * from './errors.ts'

// The machine: pure functions over a run's events.
export { evolve } from './machine/evolve.ts'
export { parseEvent, shapeFaultOf } from './machine/parse-event.ts'
export { audit, auditAll } from './machine/invariants.ts'
export { decide } from './machine/decide.ts'
export type { Decision, Refusal, Stamp } from './machine/decision.ts'
export {
  advance,
  eventOf,
  type Page,
  type Recording,
  type RestingAction,
  type Writer,
} from './machine/advance.ts'
export { invertDecide } from './machine/invert-decide.ts'
export type { RecordedPlace } from './machine/recorded-place.ts'
export { causeOf, usualCause } from './machine/usual-cause.ts'
export { chanceOf } from './machine/retry.ts'
export { isSuspended, nextAction } from './machine/controller.ts'
export type { Action } from './machine/action.ts'
export { effectsOf, type Effect } from './machine/effects-of.ts'
export { modelRequest, requestDigest, settingsOf } from './machine/model-request.ts'
export { changedInputText } from './machine/changed-input.ts'
export { transcript } from './machine/transcript.ts'
export {
  deferredCalls,
  pendingApprovals,
  tallyOf,
  type DeferredCall,
  type PendingApproval,
  type Tally,
} from './machine/tally.ts'
export { forkedEvents, requireForkable, type ForkIdentity } from './machine/fork-events.ts'
export { isStubbed } from './machine/fork-writes.ts'
export { childRunIdOf } from './machine/child-run.ts'
export { summaryDigest, summaryInstructions } from './machine/compaction.ts'
export { foldedHistory } from './machine/plain-text.ts'
export { digestOf } from './machine/digest.ts'
export { definitionTokens, messageTokens } from './machine/token-estimate.ts'
export { callsOf, type CallLog, type LoggedCall } from './machine/call-log.ts'
export {
  emptyHistoryDigest,
  historyDigests,
  messagesOf,
  withDigests,
  type History,
} from './machine/history.ts'
export { legalEvents, transitionDiagram, transitionTable } from './machine/transition-table.ts'
export * from './machine/state.ts'
export { stateFromJson, stateToJson } from './machine/state-json.ts'
export { currentModel, findCall, openTurnCalls } from './machine/state-views.ts'

// The runtime: the shell around the machine.
export type {
  Agent,
  AgentOptions,
  AgentRules,
  CompactionOptions,
  HandoffTarget,
  Handoffs,
  ModelTimeouts,
} from './runtime/agent.ts'
export { defineAgent } from './runtime/define-agent.ts'
export { createRuntime } from './runtime/create-runtime.ts'
export { requireOptions } from './machine/require-options.ts'
export * as option from './vocabulary/option.ts'
export type { OptionCheck, OptionChecks, OptionFault, OptionalCheck } from './vocabulary/option.ts'
export type {
  SettledResult,
  Given,
  InContext,
  ResumeOptions,
  RunOptions,
  Runtime,
  RuntimeOptions,
  RuntimeSession,
  SessionRunOptions,
} from './runtime/runtime.ts'
export type { InterruptedOptions } from './runtime/listed-runs.ts'
export type { CommandReceipt, InputReceipt } from './runtime/receipts.ts'
export type { RunStreams } from './runtime/run-streams.ts'
export type { Run } from './runtime/run.ts'
export type { ShownApproval } from './runtime/shown-approvals.ts'
export type { TextUpdate } from './runtime/text-updates.ts'
export type {
  AnsweredRun,
  EndedRun,
  InterruptedRun,
  RestingRun,
  RunResult,
  SuspendedRun,
} from './runtime/run-result.ts'
export { definitionIn, definitionNow, rulesIn, type ContextOption } from './runtime/run-context.ts'
export { digested } from './machine/definition-digest.ts'
export { inputFaultOf } from './runtime/recorded-schema.ts'
export { memoryLedger } from './runtime/memory-ledger.ts'
export { agentTool, type AgentTool, type AgentToolOptions } from './runtime/agent-tool.ts'
export * from './runtime/guardrail.ts'
export { handBack, handoff, type HandoffOptions } from './runtime/handoff.ts'
export { reachableAgents, withApproval } from './runtime/known-agents.ts'
export type { ForkOptions } from './runtime/fork.ts'
export type { ForkApproval, ForkEdit } from './runtime/fork-edit.ts'
export type { OutputReader, OutputSchema } from './runtime/output-schema.ts'
export type { PastEdits, PastOptions, Session } from './runtime/session.ts'

// For those who build a ledger: what every one refuses, and which facts may stand once.
export {
  emptyHead,
  endedBefore,
  endsRun,
  isStorableName,
  onceKeyOf,
  requireHead,
  requireInboxKey,
  placeTaken,
  requireWellFormed,
  secondFact,
  sessionPlaceOf,
  storableDigests,
  storableText,
  unreadInbox,
  type SessionPlace,
} from './runtime/append-rules.ts'
export { unknownCursor } from './runtime/unknown-cursor.ts'
export type { ApprovalPolicy, PolicyCall, PolicyVerdict } from './runtime/approval-policy.ts'
export { checkCalls, type CallChecker, type CheckContext } from './runtime/call-check.ts'
export type { Compaction, Rules, TakingOver, TurnChange } from './machine/rules.ts'
export type { Prices } from './runtime/price-check.ts'
