// The machine: pure functions over the events of a run. For tools that fold, judge, replay or draw runs.
export {
  type EventBatch,
  type Recording,
  type WaitingAction,
  type Writer,
  advance,
  eventOf,
} from './machine/advance.ts'
export { decide } from './machine/decide/decide.ts'
export { recoverMessage } from './machine/recover/recover-message.ts'
export type { RecordedPosition } from './machine/decide/recorded-position.ts'
export { evolve } from './machine/fold/evolve.ts'
export { foldVersion } from './machine/fold/fold-version.ts'
export { legalEvents, transitionDiagram, transitionTable } from './machine/fold/transition-table.ts'
export { type ForkIdentity, forkedEvents, requireForkable } from './machine/fork-events.ts'
export { audit, auditAll } from './machine/laws/invariants.ts'
export { isStubbed } from './machine/limits/fork-writes.ts'
export { chanceOf } from './machine/limits/retry.ts'
export { type CallLog, type LoggedCall, callsOf } from './machine/messages/call-log.ts'
export {
  type History,
  beginningOf,
  emptyHistoryDigest,
  historyDigests,
  messagesOf,
  withDigests,
} from './machine/messages/history.ts'
export { messagesShown, shownInstead } from './machine/messages/shown-messages.ts'
export { definitionTokens, messageTokens } from './machine/messages/token-estimate.ts'
export { unpreparedClosing } from './machine/next/next-turn.ts'
export { isSuspended, nextAction } from './machine/next/next-action.ts'
export { changedInputText } from './machine/prompt/changed-input.ts'
export { summaryDigest, summaryInstructions } from './machine/prompt/compaction.ts'
export {
  callsInParallel,
  additionsOf,
  modelRequest,
  requestDigest,
  settingsOf,
  writingSettings,
} from './machine/prompt/model-request.ts'
export { transcript } from './machine/prompt/transcript.ts'
export { runTimes } from './machine/run-times.ts'
export type { Action } from './machine/state/action.ts'
export type { Decision, Refusal, Stamp } from './machine/state/decision.ts'
export { type Effect, requiredEffects } from './machine/state/required-effects.ts'
export type { Compaction, Rules, TakingOver, TurnChange, TurnRequest } from './machine/state/rules.ts'
export { stateFromJson, stateToJson } from './machine/state/state-json.ts'
export { callsAwaitingChild, currentModel, findCall, openTurnCalls } from './machine/state/state-views.ts'
export {
  type Attempt,
  type Call,
  type CallStatus,
  type CollectingState,
  type Compacting,
  type DoneState,
  type ErrorStreak,
  type ExecutingState,
  type FailedAttempt,
  type IdleState,
  type InjectingState,
  type InputCheck,
  type MetLimit,
  type PartDraft,
  type PendingInput,
  type Phase,
  type Reply,
  type RunBase,
  type RunState,
  type StreamingState,
  phases,
} from './machine/state/state.ts'
export { type Totals } from './machine/state/totals.ts'
export {
  type DeferredCall,
  type PendingApproval,
  type Tally,
  deferredCalls,
  pendingApprovals,
  tallyOf,
} from './machine/laws/tally.ts'
