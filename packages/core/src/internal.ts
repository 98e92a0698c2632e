// For the other packages of Tallystick, not for users: a name here may change or go in any release.
/** The checks that options are made of; what refuses by them is named by itself. */
export * as option from './values/option.ts'
export {
  type Fault,
  type OptionalCheck,
  type OptionCheck,
  type OptionChecks,
  requireOptions,
} from './values/option.ts'
export {
  type EventBatch,
  toEvent,
  type Recording,
  type WaitingAction,
  type Writer,
} from './machine/advance.ts'
export {
  listCallsAwaitingChild,
  getCurrentModel,
  type DeferredCall,
  type Tally,
  tallyCalls,
  textContent,
} from './machine/calls.ts'
export { digestSummaryRequest, summaryInstructions } from './machine/compaction.ts'
export { isOutsideCause, isSignal } from './machine/decide.ts'
export { buildForkedEvents, type ForkIdentity, requireForkable } from './machine/fork.ts'
export {
  digestBeginning,
  type CallLog,
  readCalls,
  emptyHistoryDigest,
  type History,
  historyDigests,
  asPlainText as historyText,
  type LoggedCall,
  readMessages,
  messagesShown,
  shownInstead,
  withDigests,
} from './machine/history.ts'
export { unpreparedClosing } from './machine/next-action.ts'
export {
  digestAdditions,
  callsInParallel,
  describeChangedInput,
  requestDigest,
  getSettings,
  writingSettings,
} from './machine/request.ts'
export { recoverRandom, isStubbed } from './machine/retry.ts'
export type {
  Compaction,
  RecordedPosition,
  Refusal,
  Rules,
  Stamp,
  TakingOver,
  TurnChange,
  TurnRequest,
} from './machine/rules.ts'
export {
  type Attempt,
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
  type Reply,
  type RunBase,
  toRunTimes,
  type StreamingState,
  type Totals,
} from './machine/state.ts'
export { estimateDefinitionTokens, estimateMessageTokens } from './machine/tokens.ts'
export {
  caughtUp,
  type ChangeOptions,
  type Changes,
  followChanges,
  followAllChanges,
  type Poll,
} from './ledger/changes.ts'
export { type ContentRemoval, type OpenLedger, requireLedger } from './ledger/ledger.ts'
export { answers, eventType } from './ledger/queries.ts'
export { shownEvent } from './models/output.ts'
export { type CallChecker, checkCalls, type CheckContext, isUnfit, repairedBy } from './tools/check-calls.ts'
export { guardrail, requireGuardrailNames } from './tools/guardrails.ts'
export { AttemptTime } from './tools/tool-call.ts'
export { findInputFault, type OutputReader } from './tools/tool-schema.ts'
export { isAgentTool } from './agent/agent-tool.ts'
export {
  type AgentRules,
  calledModel,
  definedAgent,
  offeredTool,
  retryPolicy,
  someRepeats,
} from './agent/agent.ts'
export {
  type AskedTurn,
  bindRules,
  ContextOfRecord,
  type ContextOption,
  definitionIn,
  definitionNow,
  type Preparing,
} from './agent/prepare-turn.ts'
export { reachableAgents, someRules } from './agent/registry.ts'
export { answerVerdict } from './runtime/effects.ts'
export { isRunDriven } from './runtime/leases.ts'
export { readResultWithChildren, readStart, toResult } from './runtime/run-result.ts'
export { untilBegun } from './runtime/run.ts'
export { having, someLedger, somePrices } from './runtime/runtime-options.ts'
export { nextShownText, noText, type ShownText } from './runtime/run-streams.ts'
export {
  type AgentPolicy,
  definitionInRun,
  digested,
  nextTurns,
  type PinnedModel,
  recordingParts,
  type ToolOrigin,
  type ToolPolicy,
} from './events/agent-definition.ts'
export { acceptsNull, findReferred, withoutAddedNulls } from './events/answer-schema.ts'
export type { AnsweredQuestion, HistoryEdits } from './events/commands.ts'
export {
  imageDetails,
  type TodoItem,
  readTodoItems,
  todoLines,
  todoListName,
  type TodoState,
  todoStates,
} from './events/content.ts'
export { isMoment } from './events/event-parts.ts'
export {
  callEventTypes,
  callPlans,
  type CallRefusal,
  type CarriedHistory,
  type CollectedCall,
  deliveries,
  type EventTraits,
  forkWrites,
  guardedThings,
  guardrailActions,
  type HistoryEdit,
  type IdFault,
  findEventIdFault,
  removedText,
  type ReplyDelta,
  resumeReasons,
  findEventShapeFault,
  type ShownChange,
  type ShownMessages,
  type ShownPiece,
  type Spending,
  deriveCause,
  type WrittenPart,
} from './events/event.ts'
export {
  type Amounts,
  type GrantField,
  grantFields,
  leastResultChars,
  limitOfField,
  onLimits,
} from './events/limits.ts'
export { readResultName, reasoningEfforts, recoveries, toolEffects } from './events/model-request.ts'
export type { RepairedInput, Retryable, UnfitInput } from './events/signals.ts'
export {
  isTokenCount,
  largerUsage,
  type LongInputRates,
  maxPriceUsd,
  type Rates,
  ratesFor,
  searchesCost,
  tokenCounts,
  type UsageField,
  usageFields,
} from './events/usage.ts'
export { isSameSecret } from './values/digest.ts'
export { failureClasses } from './values/errors.ts'
export { defaultHost } from './values/host.ts'
export { deriveRunId } from './values/ids.ts'
export {
  getOwn,
  isFrozenOnce,
  isJson,
  isJsonObject,
  type JsonLike,
  omitUndefined,
  type OrUndefined,
  parsedFault,
  readJson,
} from './values/json.ts'
export {
  keysIn,
  knownSecrets,
  type KnownSecrets,
  secretLengthMin,
  type TextSpan,
  withoutKeys,
} from './values/secrets.ts'
export { estimateTextTokens } from './machine/tokens.ts'
export { describeDifference, legibleText, nearestNames, formatErrorSentence } from './values/text.ts'
