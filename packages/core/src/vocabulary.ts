// The words of a ledger, and the ports: events, messages, commands, limits, usage, and the functions that read them.

// Events, messages, commands and settings
export type {
  AgentDefinition,
  AnyContext,
  NextTurn,
  RecordingPolicy,
  RequestAddition,
  RunLabels,
} from './events/agent-definition.ts'
export type { Command, OutsideCommand } from './events/commands.ts'
export {
  type AssistantMessage,
  type AssistantPart,
  type Citation,
  collectCitations,
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
  type ReplyPart,
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
export {
  type Approver,
  type Approvers,
  approvers,
  type Cause,
  type Schedule,
  type StandingApproval,
  type StandingOptions,
  type StandingScope,
} from './events/event-parts.ts'
export {
  type ChildTotals,
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
  isAfterEnd,
  type ParentRef,
  parseEvent,
  type Removed,
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
export type { CallVerdict, ModelSignal, Reconciliation, Signal, ToolSignal } from './events/signals.ts'
export { addUsage, computeCost, type MaxWebSearches, type Price } from './events/usage.ts'

// The ports: ledger, model, tool
export type {
  AppendOptions,
  DueFilter,
  DueRun,
  EventQuery,
  ExpectedHead,
  Head,
  InboxEntry,
  Lease,
  LeaseClaim,
  PutOptions,
  RunFilter,
  RunLeases,
  RunRecord,
  RunWait,
  TailCursor,
  TailedEvent,
  TakeOverClaim,
} from './ledger/ledger.ts'
export type { ModelContext } from './models/model.ts'
export type { CallContext, OfferingTurn, ToolRun, ToolSource } from './tools/tool.ts'

// Ids, JSON, errors, and what a host gives
export { computeDigest } from './values/digest.ts'
export type { BusyRun, ConflictKind, FailureClass, ModelFailure, UnavailableReason } from './values/errors.ts'
export type { Cancel, Host, Random } from './values/host.ts'
export {
  deriveChildRunId,
  deriveRunId,
  deriveToolCallId,
  extractRunId,
  parseRunId,
  parseToolCallId,
  type ToolCallId,
} from './values/ids.ts'
export { type Json, type JsonObject, toCanonicalJson } from './values/json.ts'
