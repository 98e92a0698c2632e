// For the other packages of Tallystick, not for users: a name here may change or go in any release.

// Events, messages, commands and settings
export { applyGivenModel, type FallbackModel, withDigest } from './events/agent-definition.ts'
export { acceptsNull, findReferred, withoutAddedNulls } from './events/answer-schema.ts'

export {
  formatTodo,
  imageDetails,
  readTodoItems,
  type TodoItem,
  todoListName,
  todoStates,
} from './events/content.ts'
export { addMs } from './events/event-parts.ts'
export {
  callEventTypes,
  type CallPlan,
  missedPolicies,
  type CollectedCall,
  findCause,
  findEventIdFault,
  findEventShapeFault,
  forkWrites,
  removedText,
  type ShownChange,
  type PreparedCall,
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
export {
  type RepairedInput,
  type Retryable,
  toolSignalSchema,
  type UnfitInput,
  verdictSchema,
} from './events/signals.ts'
export { computeSearchesCost, type Rates } from './events/usage.ts'

// The machine
export { fitsDemand, isSamePerson } from './machine/approvals.ts'
export { computeLeft, sumSpent } from './machine/budget.ts'
export { toEvent } from './machine/advance.ts'
export {
  type DeferredCall,
  getCurrentModel,
  isBackgroundInput,
  toBackgroundInputId,
  listCallsAwaitingChild,
  type Tally,
  tallyCalls,
  toEventReceipt,
  toTextContent,
} from './machine/calls.ts'
export { digestSummaryRequest } from './machine/compaction.ts'
export { isOutsideCause, isSignal } from './machine/decide.ts'
export { buildForkedEvents, requireForkable } from './machine/fork.ts'
export {
  computeHistoryDigest,
  computeHistoryDigests,
  digestBeginning,
  emptyHistoryDigest,
  readCalls,
  readMessages,
  readShownMessages,
  toShownMessages,
  withDigests,
} from './machine/history.ts'
export { unpreparedClosing } from './machine/next-action.ts'
export {
  callsInParallel,
  computeRequestDigest,
  describeChangedInput,
  digestAdditions,
  pickWritingSettings,
} from './machine/request.ts'
export { isStubbed, recoverRandom } from './machine/retry.ts'
export type { Refusal, Rules, Stamp, TurnChange } from './machine/rules.ts'
export { type Phase, phases, type StreamingState, toRunTimes, type Totals } from './machine/state.ts'
export { estimateDefinitionTokens, estimateMessageTokens, estimateTextTokens } from './machine/tokens.ts'

// The ledger
export { caughtUp, followAllChanges, followChanges } from './ledger/changes.ts'
export { type ContentRemoval, requireLedger } from './ledger/ledger.ts'
export { eventType, matchesQuery } from './ledger/queries.ts'

// Models and tools
export { toShownEvent } from './models/output.ts'
export { askRepair, checkCalls, isUnfit } from './tools/check-calls.ts'

export { AttemptTime } from './tools/tool-call.ts'
export { createSchemaReader, findInputFault } from './tools/tool-schema.ts'

// Agents
export { isAgentTool } from './agent/agent-tool.ts'
export { calledModel, definedAgent, offeredTool, retryPolicy, someRepeats } from './agent/agent.ts'
export { overrideAgent } from './agent/override-agent.ts'
export { bindRules, ContextOfRecord, type Preparing, updateDefinition } from './agent/prepare-turn.ts'
export { listReachableAgents, someRules } from './agent/registry.ts'
export { pickRules } from './agent/run-rules.ts'

// The runtime
export { sessionAgent } from './runtime/edit-session.ts'
export { isDescendantOf } from './runtime/children.ts'
export { findSentBefore } from './runtime/commands.ts'
export { findOpenRoot } from './runtime/drive.ts'
export { readSteps } from './runtime/run-steps.ts'
export { findDrivenAgent } from './runtime/runtime.ts'
export { judgeAnswer } from './runtime/effects.ts'
export { isRunDriven } from './runtime/leases.ts'
export { AnswerReader } from './runtime/partial-output.ts'
export { readResultWithChildren, readStart, toResult } from './runtime/run-result.ts'
export { advanceShownText, noText, type ShownText } from './runtime/run-streams.ts'
export { waitUntilBegun } from './runtime/run.ts'
export {
  eventName,
  requireRunOptions,
  someLedger,
  somePrices,
  someSignal,
  valueHaving,
} from './runtime/runtime-options.ts'
export { readSchedule, readSchedules } from './runtime/schedules.ts'
export { parseInput } from './runtime/start-run.ts'

// Options, JSON, ids and texts
/** The checks that options are made of; what refuses by them is named by itself. */
export * as option from './values/option.ts'
export { isSameSecret } from './values/digest.ts'
export { failureClasses } from './values/errors.ts'
export { defaultHost } from './values/host.ts'
export {
  createMissingPackageError,
  declarePackage,
  explainNativeFailure,
  type OptionalPackage,
  readCode,
  requireNativeInterface,
} from './values/packages.ts'
export { deriveIdempotencyKey, deriveRunId } from './values/ids.ts'
export {
  copyJson,
  findParsedFault,
  getOwn,
  isJson,
  isJsonObject,
  omitUndefined,
  type OrUndefined,
  readJson,
} from './values/json.ts'
export {
  type Fault,
  formatFault,
  type OptionalSchema,
  type OptionChecks,
  requireOptions,
  type Schema,
} from './values/option.ts'
export {
  createKnownSecrets,
  findKeys,
  type KnownSecrets,
  secretLengthMin,
  type TextSpan,
  withoutKeys,
} from './values/secrets.ts'
export {
  describeDifference,
  findNearestNames,
  formatError,
  formatErrorSentence,
  formatLegibly,
  readDecimal,
  showHidden,
  unseen,
} from './values/text.ts'
