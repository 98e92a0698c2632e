// For the other packages of Tallystick, not for users: a name here may change or go in any release.
/** The checks that options are made of; what refuses by them is named by itself. */
export * as option from './values/option.ts'
export {
  type Fault,
  type OptionalSchema,
  type Schema,
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
  toTextContent,
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
  computeHistoryDigests,
  formatPlainText as historyText,
  type LoggedCall,
  readMessages,
  readShownMessages,
  toShownMessages,
  withDigests,
} from './machine/history.ts'
export { unpreparedClosing } from './machine/next-action.ts'
export {
  digestAdditions,
  callsInParallel,
  describeChangedInput,
  computeRequestDigest,
  getSettings,
  pickWritingSettings,
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
export { matchesQuery, eventType } from './ledger/queries.ts'
export { toShownEvent } from './models/output.ts'
export { type CallChecker, checkCalls, type CheckContext, isUnfit, askRepair } from './tools/check-calls.ts'
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
  toDefinitionIn,
  updateDefinition,
  type Preparing,
} from './agent/prepare-turn.ts'
export { listReachableAgents, someRules } from './agent/registry.ts'
export { judgeAnswer } from './runtime/effects.ts'
export { findOpenRoot } from './runtime/drive.ts'
export { isRunDriven } from './runtime/leases.ts'
export { readResultWithChildren, readStart, toResult } from './runtime/run-result.ts'
export { waitUntilBegun } from './runtime/run.ts'
export { valueHaving, someLedger, somePrices } from './runtime/runtime-options.ts'
export { advanceShownText, noText, type ShownText } from './runtime/run-streams.ts'
export {
  type AgentPolicy,
  applyGivenModel,
  withDigest,
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
  formatTodo,
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
  takeLargerUsage,
  type LongInputRates,
  maxPriceUsd,
  type Rates,
  findRates,
  computeSearchesCost,
  pickTokenCounts,
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
  findParsedFault,
  readJson,
} from './values/json.ts'
export {
  findKeys,
  createKnownSecrets,
  type KnownSecrets,
  secretLengthMin,
  type TextSpan,
  withoutKeys,
} from './values/secrets.ts'
export { estimateTextTokens } from './machine/tokens.ts'
export { describeDifference, formatLegibly, findNearestNames, formatErrorSentence } from './values/text.ts'
