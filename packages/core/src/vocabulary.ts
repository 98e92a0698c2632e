// What is said in a ledger, and the ports: events, messages, commands, limits, usage, and the functions that read them.
export type { Cancel, Clock, Host, Random } from './ports/clock.ts'
export type {
  AppendOptions,
  EventQuery,
  ExpectedHead,
  Head,
  InboxEntry,
  Ledger,
  RunFilter,
  RunRecord,
  TailCursor,
  TailedEvent,
} from './ports/ledger.ts'
export type { Model, ModelContext } from './ports/model.ts'
export type { Lease, LeaseClaim, RunLeases, TakeOverClaim } from './ports/run-leases.ts'
export type { CallContext, OfferingTurn, Tool, ToolRun, ToolSource } from './ports/tool.ts'
export { acceptsNull, withoutAddedNulls } from './vocabulary/agent/added-nulls.ts'
export type {
  AgentDefinition,
  FallbackModel,
  GuardrailDefinition,
  HandoffDefinition,
  OutputDefinition,
  SummarizerDefinition,
} from './vocabulary/agent/agent-definition.ts'
export {
  type RecordingPart,
  type RecordingPolicy,
  recordingParts,
} from './vocabulary/agent/recording-policy.ts'
export { type NextTurn, type OutputPolicy, nextTurns } from './vocabulary/agent/output-policy.ts'
export type { ProviderState } from './vocabulary/model/provider-state.ts'
export type {
  AgentPolicy,
  PinnedModel,
  RequestAddition,
  ToolOrigin,
  ToolPolicy,
} from './vocabulary/agent/agent-policy.ts'
export type { AnyContext } from './vocabulary/agent/any-context.ts'
export type { GivenModel, RunGiven, RunLabels } from './vocabulary/agent/run-given.ts'
export { runIdOfKey } from './vocabulary/values/key-run-id.ts'
export { digested } from './vocabulary/agent/definition-digest.ts'
export {
  type LongInputRates,
  type Price,
  type Rates,
  type MaxWebSearches,
  costOf,
  maxPriceUsd,
  ratesFor,
  searchesCost,
} from './vocabulary/billing/price.ts'
export {
  type Usage,
  type UsageField,
  addUsage,
  isTokenCount,
  largerUsage,
  tokenCounts,
  usageFields,
} from './vocabulary/billing/usage.ts'
export {
  type BusyRun,
  ConfigurationError,
  type ConflictKind,
  IllegalTransitionError,
  LawBrokenError,
  LedgerConflictError,
  LedgerDamagedError,
  LedgerUnavailableError,
  ProviderError,
  RunNotFoundError,
  TallystickError,
  type UnavailableReason,
  UnknownEventError,
} from './vocabulary/errors.ts'
export { type Cause, causes } from './vocabulary/events/cause.ts'
export {
  type AnsweredQuestion,
  type Command,
  type HistoryEdits,
  type OutsideCommand,
  type ResumeCommand,
  type StartCommand,
} from './vocabulary/events/command.ts'
export {
  causeOf,
  type EventTraits,
  eventTraits,
  eventTypes,
  usualCause,
} from './vocabulary/events/event-traits.ts'
export { type IdFault, idFaultOf } from './vocabulary/events/event-ids.ts'
export {
  type CallEventType,
  type CallPlan,
  type CallRefusal,
  type CarriedHistory,
  type ChildTotals,
  type CollectedCall,
  type Delivery,
  type EventBodies,
  type EventEnvelope,
  type EventOf,
  type EventType,
  type Fact,
  type FactOf,
  type FinishReason,
  type ForkWrites,
  type GuardedThing,
  type GuardrailAction,
  type Handoff,
  type HistoryEdit,
  type ParentRef,
  type Removed,
  type ReplyDelta,
  type WrittenPart,
  type ResumeReason,
  type RuntimeEvent,
  type ShownChange,
  type ShownMessages,
  type ShownPiece,
  type Spending,
  callEventTypes,
  callPlans,
  deliveries,
  finishReasons,
  forkWrites,
  guardedThings,
  guardrailActions,
  removedText,
  resumeReasons,
} from './vocabulary/events/event.ts'
export { parseEvent, shapeFaultOf } from './vocabulary/events/parse-event.ts'
export { type Grant, type GrantField, grantFields, limitOfField } from './vocabulary/limits/grant.ts'
export {
  type GivenLimits,
  type GivenRetryPolicy,
  type LimitName,
  type Limits,
  type OnLimit,
  type RetryPolicy,
  defaultLimits,
  defaultRetryPolicy,
  leastResultChars,
  limitNames,
  onLimits,
} from './vocabulary/limits/limits.ts'
export type { Citation, Source } from './vocabulary/model/citation.ts'
export {
  type AssistantMessage,
  type AssistantPart,
  type FilePart,
  type ImageDetail,
  type ImagePart,
  type Message,
  type ModelRef,
  type Opaque,
  type Outcome,
  type ProviderExecuted,
  type ProviderFile,
  type ProviderPart,
  type ReasoningPart,
  type RequestedCall,
  type ResultPart,
  type StopReason,
  type TextPart,
  type ToolCallPart,
  type ToolResult,
  type ToolResultsMessage,
  type UserMessage,
  type UserPart,
  citationsOf,
  imageDetails,
  outcomes,
  stopReasons,
  textOf,
} from './vocabulary/model/content.ts'
export { type FailureClass, type ModelFailure, failureClasses } from './vocabulary/model/failure.ts'
export type { ModelRequest } from './vocabulary/model/model-request.ts'
export {
  type ModelSettings,
  type ProviderOptions,
  type ReasoningEffort,
  reasoningEfforts,
} from './vocabulary/model/model-settings.ts'
export type { ModelRefusal, RefusalPolicy } from './vocabulary/model/refusal.ts'
export {
  readResultName,
  type Recovery,
  type ToolChoice,
  type ToolDefinition,
  type ToolEffect,
  recoveries,
  toolEffects,
} from './vocabulary/model/tool-definition.ts'
export {
  type TodoItem,
  type TodoState,
  todoItemsOf,
  todoLines,
  todoListName,
  todoStates,
} from './vocabulary/model/todo-list.ts'
export { type TextSpan, keysIn, withoutKeys } from './vocabulary/secrets/key-shapes.ts'
export { type KnownSecrets, knownSecrets, secretLengthMin } from './vocabulary/secrets/known-secrets.ts'
export type {
  CallVerdict,
  CheckedCall,
  GuardrailFind,
  ModelSignal,
  Reconciliation,
  RepairedInput,
  ReplyPart,
  Retryable,
  Signal,
  ToolSignal,
  UnfitInput,
} from './vocabulary/signals/signal.ts'
export { childRunIdOf } from './vocabulary/values/child-run-id.ts'
export { digestOf } from './vocabulary/values/digest.ts'
export {
  type RunId,
  type ToolCallId,
  idempotencyKeyOf,
  parseRunId,
  parseToolCallId,
  runIdOfCall,
  toolCallIdOf,
} from './vocabulary/values/ids.ts'
export { type Json, type JsonLike, type JsonObject, canonicalJson } from './vocabulary/values/json.ts'
export { isMoment } from './vocabulary/events/moment.ts'
