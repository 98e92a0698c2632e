// The machine: pure functions over the events of a run. For tools that fold, judge, replay or draw runs.
export {
  type EventBatch,
  type Recording,
  type WaitingAction,
  type Writer,
  advance,
  eventOf,
} from './machine/advance.ts'
export { decide, recoverMessage } from './machine/decide.ts'
export type {
  Action,
  Compaction,
  Decision,
  RecordedPosition,
  Refusal,
  Rules,
  Stamp,
  TakingOver,
  TurnChange,
  TurnRequest,
} from './machine/rules.ts'
export { evolve } from './machine/evolve.ts'
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
  foldVersion,
  type IdleState,
  type InjectingState,
  type InputCheck,
  type MetLimit,
  type PartDraft,
  type PendingInput,
  type Phase,
  phases,
  type Reply,
  type RunBase,
  type RunState,
  runTimes,
  stateFromJson,
  stateToJson,
  type StreamingState,
  type Totals,
} from './machine/state.ts'
export { legalEvents, transitionDiagram, transitionTable } from './machine/transition-table.ts'
export { type ForkIdentity, forkedEvents, requireForkable } from './machine/fork.ts'
export { audit, auditAll } from './machine/laws.ts'
export { chanceOf, isStubbed } from './machine/retry.ts'
export {
  beginningOf,
  type CallLog,
  callsOf,
  emptyHistoryDigest,
  type History,
  historyDigests,
  type LoggedCall,
  messagesOf,
  messagesShown,
  shownInstead,
  withDigests,
} from './machine/history.ts'
export { definitionTokens, messageTokens } from './machine/tokens.ts'
export { isSuspended, nextAction, unpreparedClosing } from './machine/next-action.ts'
export {
  additionsOf,
  callsInParallel,
  changedInputText,
  modelRequest,
  requestDigest,
  settingsOf,
  transcript,
  writingSettings,
} from './machine/request.ts'
export { summaryDigest, summaryInstructions } from './machine/compaction.ts'
export { type Effect, requiredEffects } from './machine/required-effects.ts'
export {
  callsAwaitingChild,
  currentModel,
  type DeferredCall,
  deferredCalls,
  findCall,
  openTurnCalls,
  type PendingApproval,
  pendingApprovals,
  type Tally,
  tallyOf,
} from './machine/calls.ts'
