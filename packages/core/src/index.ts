// Vocabulary: what is said in a ledger.
export { acceptsNull, withoutAddedNulls } from './vocabulary/agent/added-nulls.ts'
export * from './vocabulary/agent/agent-definition.ts'
export type { AgentPolicy, PinnedModel, ToolPolicy } from './vocabulary/agent/agent-policy.ts'
export type { AnyContext } from './vocabulary/agent/any-context.ts'
export { causes, type Cause } from './vocabulary/events/cause.ts'
export type * from './vocabulary/model/citation.ts'
export * from './vocabulary/model/content.ts'
export * from './vocabulary/events/event.ts'
export * from './vocabulary/events/event-catalogue.ts'
export { idFaultOf, type IdFault } from './vocabulary/events/event-ids.ts'
export { eventSchemas } from './vocabulary/events/event-schema.ts'
export * from './vocabulary/model/failure.ts'
export { grantFields, limitOfField, type Grant, type GrantField } from './vocabulary/limits/grant.ts'
export * from './vocabulary/values/ids.ts'
export * from './vocabulary/values/json.ts'
export { keysIn, withoutKeys, type TextSpan } from './vocabulary/secrets/key-shapes.ts'
export { knownSecrets, secretLengthMin, type KnownSecrets } from './vocabulary/secrets/known-secrets.ts'
export * from './vocabulary/limits/limits.ts'
export * from './vocabulary/model/model-request.ts'
export { isMoment } from './vocabulary/values/moment.ts'
export type { ModelSettings, ProviderOptions } from './vocabulary/model/model-settings.ts'
export { omitUndefined } from './vocabulary/values/omit-undefined.ts'
export * from './vocabulary/billing/price.ts'
export type { ModelRefusal, RefusalPolicy } from './vocabulary/model/refusal.ts'
export * from './vocabulary/signals/signal.ts'
export * from './vocabulary/events/command.ts'
export * from './vocabulary/model/tool-definition.ts'
export * from './vocabulary/billing/usage.ts'

// Ports: what the runtime needs of others.
export * from './ports/clock.ts'
export * from './ports/ledger.ts'
export * from './ports/model.ts'
export * from './ports/tool.ts'

export * from './vocabulary/errors.ts'

// The machine: pure functions over a run's events.
export { evolve } from './machine/fold/evolve.ts'
export { foldVersion } from './machine/fold/fold-version.ts'
export { parseEvent, shapeFaultOf } from './vocabulary/events/parse-event.ts'
export { audit, auditAll } from './machine/laws/invariants.ts'
export { decide } from './machine/decide/decide.ts'
export type { Decision, Refusal, Stamp } from './machine/state/decision.ts'
export {
  advance,
  eventOf,
  type EventBatch,
  type Recording,
  type WaitingAction,
  type Writer,
} from './machine/advance.ts'
export { invertDecide } from './machine/decide/invert-decide.ts'
export type { RecordedPosition } from './machine/decide/recorded-position.ts'
export { causeOf, usualCause } from './vocabulary/events/usual-cause.ts'
export { chanceOf } from './machine/limits/retry.ts'
export { isSuspended, nextAction } from './machine/next/next-action.ts'
export type { Action } from './machine/state/action.ts'
export { requiredEffects, type Effect } from './machine/state/required-effects.ts'
export { modelRequest, requestDigest, settingsOf } from './machine/prompt/model-request.ts'
export { changedInputText } from './machine/prompt/changed-input.ts'
export { transcript } from './machine/prompt/transcript.ts'
export {
  deferredCalls,
  pendingApprovals,
  tallyOf,
  type DeferredCall,
  type PendingApproval,
  type Tally,
} from './machine/state/tally.ts'
export { forkedEvents, requireForkable, type ForkIdentity } from './machine/fork-events.ts'
export { isStubbed } from './machine/limits/fork-writes.ts'
export { childRunIdOf } from './vocabulary/values/child-run-id.ts'
export { summaryDigest, summaryInstructions } from './machine/prompt/compaction.ts'
export { foldedHistory } from './machine/messages/plain-text.ts'
export { digestOf } from './vocabulary/values/digest.ts'
export { definitionTokens, messageTokens } from './machine/messages/token-estimate.ts'
export { callsOf, type CallLog, type LoggedCall } from './machine/messages/call-log.ts'
export {
  emptyHistoryDigest,
  historyDigests,
  messagesOf,
  withDigests,
  type History,
} from './machine/messages/history.ts'
export { legalEvents, transitionDiagram, transitionTable } from './machine/fold/transition-table.ts'
export * from './machine/state/state.ts'
export { stateFromJson, stateToJson } from './machine/state/state-json.ts'
export { currentModel, findCall, openTurnCalls } from './machine/state/state-views.ts'

// The runtime: the shell around the machine.
export type {
  Agent,
  AgentOptions,
  AgentRules,
  CompactionOptions,
  HandoffTarget,
  Handoffs,
  ModelTimeouts,
} from './runtime/agent/agent.ts'
export { defineAgent } from './runtime/definition/define-agent.ts'
export { createRuntime } from './runtime/run/create-runtime.ts'
export { requireOptions } from './vocabulary/options/require-options.ts'
export * as option from './vocabulary/options/option.ts'
export type { OptionCheck, OptionChecks, OptionFault, OptionalCheck } from './vocabulary/options/option.ts'
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
} from './runtime/run/runtime.ts'
export type { InterruptedOptions } from './runtime/reading/listed-runs.ts'
export type { CommandAcknowledgement } from './runtime/commands/command-acknowledgement.ts'
export type { RunStreams } from './runtime/reading/run-streams.ts'
export type { Run } from './runtime/run/run.ts'
export type { ShownApproval } from './runtime/commands/shown-approvals.ts'
export type { TextUpdate } from './runtime/reading/text-updates.ts'
export type {
  AnsweredRun,
  EndedRun,
  InterruptedRun,
  StoppedRun,
  RunResult,
  SuspendedRun,
} from './runtime/reading/run-result.ts'
export { definitionIn, definitionNow, rulesIn, type ContextOption } from './runtime/definition/run-context.ts'
export { digested } from './vocabulary/agent/definition-digest.ts'
export { inputFaultOf } from './runtime/effects/recorded-schema.ts'
export { memoryLedger } from './memory-ledger/memory-ledger.ts'
export { agentTool, type AgentTool, type AgentToolOptions } from './runtime/definition/agent-tool.ts'
export * from './runtime/agent/guardrail.ts'
export { handBack, handoff, type HandoffOptions } from './runtime/definition/handoff.ts'
export { reachableAgents, withApproval } from './runtime/definition/registered-agents.ts'
export type { ForkOptions } from './runtime/fork/fork.ts'
export type { ForkApproval, ForkEdit } from './runtime/fork/fork-edit.ts'
export type { OutputReader, OutputSchema } from './runtime/agent/output-schema.ts'
export type { PastEdits, PastOptions, Session } from './runtime/session/session.ts'

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
} from './memory-ledger/append-rules.ts'
export { unknownCursor } from './memory-ledger/unknown-cursor.ts'
export type { ApprovalPolicy, PolicyCall, PolicyVerdict } from './runtime/agent/approval-policy.ts'
export { checkCalls, type CallChecker, type CheckContext } from './runtime/effects/call-check.ts'
export type { Compaction, Rules, TakingOver, TurnChange } from './machine/state/rules.ts'
export type { Prices } from './runtime/agent/price-check.ts'
