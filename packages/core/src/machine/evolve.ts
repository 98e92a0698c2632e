import { IllegalTransitionError } from '../values/errors.ts'
import { givenOf } from '../events/agent-definition.ts'
import type { UserMessage } from '../events/content.ts'
import { type EventOf, type EventType, requireKnown, type RuntimeEvent } from '../events/event.ts'
import { omitUndefined } from '../values/json.ts'
import { emptyCallLog, historyOf, messageAt } from './history.ts'
import { isSuspended } from './next-action.ts'
import { listGuardrails, requiresEffects } from './required-effects.ts'
import {
  applyMessageFinished,
  applyModelCallStarted,
  applyModelStreamFailed,
  applyDelta,
  applyToolInput,
  applyToolRequest,
  applyUsageUpdated,
  withAttempt,
} from './fold-model-call.ts'
import {
  applyApprovalDecided,
  applyApprovalRequested,
  applyAttemptFailed,
  applyRequestsCollected,
  applyResultsInjected,
  applyToolDeferred,
  applyToolProgress,
  applyToolResult,
  applyToolStarted,
  requireClosed,
  withChange,
} from './fold-tool-calls.ts'
import {
  applyAgentHandedOff,
  applyCompactionStarted,
  applyContextCompacted,
  applyGuardrailsChecked,
  applyGuardrailTripped,
  applyHistoryCarried,
  applyHistoryEdited,
  applyOutputChecked,
  withInputCheck,
} from './fold-history.ts'
import { illegalTransition, transitionTable } from './transition-table.ts'
import { namesModel } from './request.ts'
import { toBase, type DoneState, noTotals, type RunState, withMessage } from './state.ts'
import { estimateDefinitionTokens } from './tokens.ts'

/**
 * The fold: the state before an event, and the event, to the state after it. `undefined` is the state before the
 * first event. Pure and total: an event that is not legal in the phase throws `IllegalTransitionError`, and one that
 * this release does not know an `UnknownEventError`.
 */
export function evolve(state: RunState | undefined, event: RuntimeEvent): RunState {
  requireKnown(event)
  if (state === undefined) return createFirstState(event)
  if (!Object.hasOwn(transitionTable[state.phase], event.type)) throw illegalTransition(state, event)
  requireOrder(state, event)
  const { seq, epoch, at, turn } = event
  const waitedMs = state.waitedMs + measureWait(state, event)
  const gone = event.removed && state.removedFrom === undefined ? { removedFrom: seq } : undefined
  const fold = folds[event.type] as (state: RunState, event: RuntimeEvent) => RunState
  const next = fold({ ...state, seq, epoch, at, turn, waitedMs, ...gone }, event)
  // What a fork shares with another run says nothing about its own repeats.
  const isForked = state.parent?.relation === 'fork' && seq === state.parent.seq + 1
  return isForked ? withChange(next) : next
}

type Fold<T extends EventType> = (state: RunState, event: EventOf<T>) => RunState

/**
 * EVERY EVENT once: the state that it leads to. `changing` marks those that may change what a call answers, or what the
 * model makes of it: someone said or decided something, time passed unwatched, or the model was shown less of what it knew.
 * What tools do, and what they answer, is folded with their calls.
 */
const folds: { readonly [T in EventType]: Fold<T> } = {
  run_started(state, event) {
    throw illegalTransition(state, event)
  },
  run_resumed: changing(applyRunResumed),
  run_finished: applyRunFinished,
  history_carried: applyHistoryCarried,
  history_edited: changing(applyHistoryEdited),
  input_received: changing(applyInputReceived),
  input_settled: applyInputSettled,
  model_call_started: applyModelCallStarted,
  assistant_started: (state, event) =>
    withAttempt(state, event, omitUndefined({ providerMessageId: event.providerMessageId })),
  assistant_text_delta: applyDelta,
  assistant_reasoning_delta: applyDelta,
  tool_input_delta: applyToolInput,
  tool_request_ready: applyToolRequest,
  usage_updated: applyUsageUpdated,
  assistant_message_finished: applyMessageFinished,
  model_stream_failed: applyModelStreamFailed,
  tool_requests_collected: applyRequestsCollected,
  approval_requested: applyApprovalRequested,
  approval_decided: changing(applyApprovalDecided),
  tool_started: applyToolStarted,
  tool_progress: applyToolProgress,
  tool_deferred: applyToolDeferred,
  tool_attempt_failed: applyAttemptFailed,
  tool_result: applyToolResult,
  tool_results_injected: applyResultsInjected,
  compaction_started: applyCompactionStarted,
  context_compacted: changing(applyContextCompacted),
  agent_handed_off: changing(applyAgentHandedOff),
  guardrail_tripped: applyGuardrailTripped,
  guardrails_checked: applyGuardrailsChecked,
  output_checked: applyOutputChecked,
  limit_reached: (state, { limit, policy, at }) => ({ ...state, metLimit: { limit, policy, at } }),
  limit_raised: changing(applyLimitRaised),
  cancel_requested: (state, { at, by, reason }) => ({
    ...state,
    cancel: { at, ...omitUndefined({ by, reason }) },
  }),
}

function changing<T extends EventType>(fold: Fold<T>): Fold<T> {
  return (state, event) => withChange(fold(state, event))
}

/** How long nothing was in flight before this event, in milliseconds: a person was waited for, or a process. */
function measureWait(state: RunState, event: RuntimeEvent): number {
  const waitedMs = event.at - state.at
  // Events of one append have one time: nothing was waited for between them.
  if (waitedMs <= 0) return 0
  if (event.type === 'run_resumed') return waitedMs
  // Whether the writer had to wait here, whatever was removed from the record since.
  const known =
    state.phase === 'executing' && state.removedFrom !== undefined
      ? { ...state, calls: state.calls.map(({ inputRemoved: _since, ...call }) => call) }
      : state
  return isSuspended(known) ? waitedMs : 0
}

function createFirstState(event: RuntimeEvent): RunState {
  if (event.type !== 'run_started' || event.seq !== 1) {
    throw new IllegalTransitionError('(nothing)', event.type, ['run_started'], `at seq ${event.seq}`)
  }
  return {
    phase: 'idle',
    runId: event.runId,
    seq: event.seq,
    epoch: event.epoch,
    at: event.at,
    turn: event.turn,
    startedAt: event.at,
    agent: event.agent,
    definition: event.definition,
    limits: event.limits,
    retry: event.retry,
    ...omitUndefined({ sessionId: event.sessionId, sessionPlace: event.sessionPlace, parent: event.parent }),
    ...givenOf(event),
    ...omitUndefined({ withContext: event.withContext }),
    ...omitUndefined({ subject: event.subject, removedFrom: event.removed && event.seq }),
    history: historyOf([]),
    exchangeFrom: 0,
    totals: noTotals,
    contextTokens: estimateDefinitionTokens(event.definition),
    reportedTokens: 0,
    estimateFactor: 1,
    waitedMs: 0,
    callLog: emptyCallLog,
    standstill: { from: 0, replyFrom: 0, served: 0 },
    errorStreaks: {},
    pendingInputs: [],
    inputSinceReply: false,
    takeOvers: 0,
    repairs: 0,
    lastText: '',
  }
}

/** Law 4, and law 1: a call's events are in its own turn. */
function requireOrder(state: RunState, event: RuntimeEvent): void {
  if (event.runId !== state.runId) throw illegalTransition(state, event, `it belongs to run ${event.runId}`)
  if (event.seq !== state.seq + 1)
    throw illegalTransition(state, event, `seq ${event.seq} follows ${state.seq}`)
  if (event.epoch < state.epoch)
    throw illegalTransition(state, event, `epoch ${event.epoch} follows ${state.epoch}`)
  const startsTurn = event.type === 'model_call_started' && event.attempt === 1
  if (event.turn !== state.turn + (startsTurn ? 1 : 0)) {
    throw illegalTransition(state, event, `turn ${event.turn} follows ${state.turn}`)
  }
}

function applyRunResumed(before: RunState, event: EventOf<'run_resumed'>): RunState {
  const { definition = before.definition } = event
  const { model, ...rest } = before
  // A model that took over stays in use as long as the agent's code names it.
  const state = model === undefined || namesModel(definition, model) ? before : rest
  const takeOvers = state.takeOvers + (requiresEffects(before) ? 1 : 0)
  const known = new Set((definition.guardrails ?? []).map(({ name }) => name))
  const next = withInputCheck({ ...state, definition, takeOvers }, (name) => known.has(name))
  const { compacting } = next
  const left = compacting ? { ...next, compacting: { ...compacting, interrupted: true as const } } : next
  if (left.phase !== 'executing') return left
  const calls = left.calls.map((call) =>
    call.status === 'started' ? { ...call, status: 'in_doubt' as const } : call,
  )
  return { ...left, calls }
}

function applyInputReceived(state: RunState, event: EventOf<'input_received'>): RunState {
  const { message, delivery, receipt } = event
  if (delivery === 'start') return withUserMessage({ ...state, exchangeFrom: state.history.length }, message)
  if (receipt === undefined || state.pendingInputs.some((input) => input.inputId === receipt)) {
    throw illegalTransition(state, event, 'input that comes later needs an id of its own')
  }
  return { ...state, pendingInputs: [...state.pendingInputs, { inputId: receipt, delivery, message }] }
}

/** Returns whether what was said so far has its answer: what comes now begins a new exchange. */
function isAnswered({ history }: RunState): boolean {
  const last = messageAt(history, history.length - 1)
  if (last?.role !== 'assistant') return false
  const asks = last.parts.some(({ type }) => type === 'tool_call')
  return !asks && !last.partial && ['end', 'tool_use', 'other'].includes(last.stopReason)
}

/** A user's message enters the history, and the agent's guardrails have to check it. */
function withUserMessage(state: RunState, message: UserMessage): RunState {
  const exchangeFrom = isAnswered(state) ? state.history.length : state.exchangeFrom
  const next = { ...withMessage(state, message), exchangeFrom, inputSinceReply: true }
  const guardrails = listGuardrails(state, 'input')
  if (guardrails.length === 0) return next
  const from = state.inputCheck?.from ?? state.history.length
  return { ...next, inputCheck: { seq: state.seq, from, guardrails } }
}

function applyInputSettled(state: RunState, event: EventOf<'input_settled'>): RunState {
  const input = state.pendingInputs.find(({ inputId }) => inputId === event.receipt)
  if (input === undefined) throw illegalTransition(state, event, `no input ${event.receipt} waits`)
  const rest = { ...state, pendingInputs: state.pendingInputs.filter((other) => other !== input) }
  if (!event.delivered) return rest
  requireClosed(state, event)
  if (state.phase === 'streaming') throw illegalTransition(state, event, 'a model call is in flight')
  return withChange(withUserMessage(rest, input.message))
}

function applyRunFinished(state: RunState, event: EventOf<'run_finished'>): DoneState {
  requireClosed(state, event)
  const [input] = state.pendingInputs
  if (input) throw illegalTransition(state, event, `input ${input.inputId} is not settled`)
  const { reason, detail } = event
  return { ...toBase(state), phase: 'done', reason, ...(detail !== undefined && { detail }) }
}

function applyLimitRaised(state: RunState, event: EventOf<'limit_raised'>): RunState {
  const limits = { ...state.limits, [event.limit]: event.max }
  if (state.metLimit?.limit !== event.limit) return { ...state, limits }
  const { metLimit: _met, ...rest } = state
  return { ...rest, limits }
}
