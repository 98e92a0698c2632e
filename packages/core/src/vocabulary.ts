// What is said in a ledger, and the ports: events, messages, commands, limits, usage, and the functions that read them.
export type {
  AppendOptions,
  EventQuery,
  ExpectedHead,
  Head,
  InboxEntry,
  Lease,
  LeaseClaim,
  RunFilter,
  RunLeases,
  RunRecord,
  TailCursor,
  TailedEvent,
  TakeOverClaim,
} from './ledger/ledger.ts'
export type { ModelContext } from './models/model.ts'
export type { CallContext, OfferingTurn, ToolRun, ToolSource } from './tools/tool.ts'
export type {
  AgentDefinition,
  AnyContext,
  FallbackModel,
  GivenModel,
  GuardrailDefinition,
  HandoffDefinition,
  NextTurn,
  OutputDefinition,
  OutputPolicy,
  RecordingPart,
  RecordingPolicy,
  RequestAddition,
  RunGiven,
  RunLabels,
  SummarizerDefinition,
} from './events/agent-definition.ts'
export type { Command, OutsideCommand, ResumeCommand, StartCommand } from './events/commands.ts'
export {
  type AssistantMessage,
  type AssistantPart,
  type Citation,
  citationsOf,
  type FilePart,
  type ImageDetail,
  type ImagePart,
  type ModelRef,
  type Opaque,
  type Outcome,
  outcomes,
  type ProviderExecuted,
  type ProviderFile,
  type ProviderPart,
  type ProviderState,
  type ReasoningPart,
  type RequestedCall,
  type ResultPart,
  type Source,
  type StopReason,
  stopReasons,
  type TextPart,
  type ToolCallPart,
  type ToolResult,
  type ToolResultsMessage,
  type UserMessage,
  type UserPart,
} from './events/content.ts'
export { type Cause, causes } from './events/event-parts.ts'
export { parseEvent } from './events/event-schema.ts'
export {
  type CallEventType,
  type CallPlan,
  causeOf,
  type ChildTotals,
  type Delivery,
  type EventBodies,
  type EventEnvelope,
  type EventOf,
  eventTraits,
  type EventType,
  eventTypes,
  type Fact,
  type FactOf,
  type FinishReason,
  finishReasons,
  type ForkWrites,
  type GuardedThing,
  type GuardrailAction,
  type Handoff,
  type ParentRef,
  type Removed,
  type ResumeReason,
  type ToolSpending,
} from './events/event.ts'
export {
  defaultLimits,
  defaultRetryPolicy,
  type GivenLimits,
  type GivenRetryPolicy,
  type Grant,
  type LimitName,
  limitNames,
  type OnLimit,
  type Repeats,
  type RetryPolicy,
} from './events/limits.ts'
export type {
  ModelRefusal,
  ModelSettings,
  ProviderOptions,
  ReasoningEffort,
  Recovery,
  RefusalPolicy,
  ToolChoice,
  ToolDefinition,
  ToolEffect,
} from './events/model-request.ts'
export type {
  CallVerdict,
  CheckedCall,
  GuardrailFind,
  ModelSignal,
  Reconciliation,
  ReplyPart,
  Signal,
  ToolSignal,
} from './events/signals.ts'
export { addUsage, costOf, type MaxWebSearches, type Price } from './events/usage.ts'
export { digestOf } from './values/digest.ts'
export type { BusyRun, ConflictKind, FailureClass, ModelFailure, UnavailableReason } from './values/errors.ts'
export type { Cancel, Host, Random } from './values/host.ts'
export {
  childRunIdOf,
  idempotencyKeyOf,
  parseRunId,
  parseToolCallId,
  runIdOfCall,
  type ToolCallId,
  toolCallIdOf,
} from './values/ids.ts'
export { canonicalJson, type Json, type JsonObject } from './values/json.ts'
