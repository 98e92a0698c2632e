// Vocabulary: what is said in a ledger.
export * from './vocabulary/agent-definition.ts'
export * from './vocabulary/content.ts'
export * from './vocabulary/event.ts'
export * from './vocabulary/event-catalogue.ts'
export { eventSchemas } from './vocabulary/event-schema.ts'
export * from './vocabulary/failure.ts'
export * from './vocabulary/ids.ts'
export * from './vocabulary/json.ts'
export * from './vocabulary/limits.ts'
export * from './vocabulary/model-request.ts'
export * from './vocabulary/price.ts'
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
export { parseEvent } from './machine/parse-event.ts'
export { audit, auditAll } from './machine/invariants.ts'
export { decide } from './machine/decide.ts'
export type { Decision, Refusal, Stamp } from './machine/decision.ts'
export { advance, type Page, type RestingAction, type Writer } from './machine/advance.ts'
export { nextAction } from './machine/controller.ts'
export type { Action } from './machine/action.ts'
export { effectsOf, isSuspended, type Effect } from './machine/effects-of.ts'
export { modelRequest, requestDigest } from './machine/model-request.ts'
export { transcript } from './machine/transcript.ts'
export {
  deferredCalls,
  pendingApprovals,
  tallyOf,
  type DeferredCall,
  type PendingApproval,
  type Tally,
} from './machine/tally.ts'
export { digestOf } from './machine/digest.ts'
export { callsOf, type CallLog, type LoggedCall } from './machine/call-log.ts'
export { messagesOf, type History } from './machine/history.ts'
export { legalEvents, transitionDiagram, transitionTable } from './machine/transition-table.ts'
export * from './machine/state.ts'

// The runtime: the shell around the machine.
export { defineAgent, type Agent, type AgentOptions } from './runtime/agent.ts'
export {
  createRuntime,
  type SettledResult,
  type RunOptions,
  type Runtime,
  type RuntimeOptions,
} from './runtime/create-runtime.ts'
export type { CommandReceipt } from './runtime/receipts.ts'
export type { Run } from './runtime/run.ts'
export type { RunResult } from './runtime/run-result.ts'
export { memoryLedger } from './runtime/memory-ledger.ts'

// For those who build a ledger: what every one refuses, and which facts may stand once.
export {
  emptyHead,
  onceKeyOf,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  secondFact,
  storableText,
} from './runtime/append-rules.ts'
export {
  checkCalls,
  type ApprovalPolicy,
  type CallChecker,
  type PolicyCall,
  type PolicyVerdict,
} from './runtime/call-check.ts'
export type { Compaction, Rules, TurnChange } from './machine/rules.ts'
export type { Prices } from './runtime/known-agents.ts'
