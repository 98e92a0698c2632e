import { IllegalTransitionError } from '../values/errors.ts'
import { type AgentDefinition, givenOf } from '../events/agent-definition.ts'
import type { UserMessage } from '../events/content.ts'
import { type EventOf, type EventType, requireKnown, type RuntimeEvent } from '../events/event.ts'
import { omitUndefined } from '../values/json.ts'
import { emptyCallLog, emptyHistory, messageAt } from './history.ts'
import { isSuspended } from './next-action.ts'
import { listGuardrails, requiresEffects } from './required-effects.ts'
import {
  applyMessageFinished,
  applyModelCallStarted,
  applyModelStreamFailed,
  applyUsageUpdated,
  withAttempt,
  withDelta,
  withRequest,
  withToolInput,
} from './fold-model-call.ts'
import { foldToolCalls, requireClosed, withChange } from './fold-tool-calls.ts'
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
  const next = applyEvent(moveToEvent(state, event), event)
  return endsStandstill(state, event) ? withChange(next) : next
}

/** Returns whether all counts of equal answers begin anew after this event. */
function endsStandstill({ parent }: RunState, event: RuntimeEvent): boolean {
  if (parent?.relation === 'fork' && event.seq === parent.seq + 1) return true
  return event.type === 'input_settled' ? event.delivered : mayChangeAnswers[event.type]
}

/**
 * The events that may change what a call answers, or what the model makes of it: someone said or decided something, time
 * passed unwatched, or the model was shown less of what it knew. What tools do, and what they answer, is folded with
 * their calls.
 */
const mayChangeAnswers: { readonly [T in EventType]: boolean } = {
  run_started: false,
  history_carried: false,
  history_edited: true,
  run_resumed: true,
  run_finished: false,
  input_received: true,
  input_settled: true,
  model_call_started: false,
  assistant_started: false,
  assistant_text_delta: false,
  assistant_reasoning_delta: false,
  tool_input_delta: false,
  tool_request_ready: false,
  usage_updated: false,
  assistant_message_finished: false,
  model_stream_failed: false,
  tool_requests_collected: false,
  approval_requested: false,
  approval_decided: true,
  tool_started: false,
  tool_progress: false,
  tool_deferred: false,
  tool_attempt_failed: false,
  tool_result: false,
  tool_results_injected: false,
  compaction_started: false,
  context_compacted: true,
  agent_handed_off: true,
  guardrail_tripped: false,
  guardrails_checked: false,
  output_checked: false,
  limit_reached: false,
  limit_raised: true,
  cancel_requested: false,
}

/** The state with the place of an event that follows it. */
function moveToEvent(state: RunState, event: RuntimeEvent): RunState {
  const { seq, epoch, at, turn } = event
  const waitedMs = state.waitedMs + measureWait(state, event)
  const gone = event.removed && state.removedFrom === undefined ? { removedFrom: seq } : undefined
  // V8 copies objects of a few shapes at one place of the code ten times faster than those of more, and each phase has its own.
  switch (state.phase) {
    case 'idle':
      return { ...state, seq, epoch, at, turn, waitedMs, ...gone }
    case 'streaming':
      return { ...state, seq, epoch, at, turn, waitedMs, ...gone }
    case 'collecting':
      return { ...state, seq, epoch, at, turn, waitedMs, ...gone }
    case 'executing':
      return { ...state, seq, epoch, at, turn, waitedMs, ...gone }
    case 'injecting':
    case 'done':
      return { ...state, seq, epoch, at, turn, waitedMs, ...gone }
  }
}

/** How long nothing was in flight before this event, in milliseconds: a person was waited for, or a process. */
function measureWait(state: RunState, event: RuntimeEvent): number {
  const waitedMs = event.at - state.at
  // Events of one append have one time: nothing was waited for between them.
  if (waitedMs <= 0) return 0
  return event.type === 'run_resumed' || wasSuspended(state) ? waitedMs : 0
}

/** Returns whether the writer of the run had to wait here, whatever was removed from the record since. */
function wasSuspended(state: RunState): boolean {
  if (state.phase !== 'executing' || state.removedFrom === undefined) return isSuspended(state)
  return isSuspended({ ...state, calls: state.calls.map(({ inputRemoved: _since, ...call }) => call) })
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
    history: emptyHistory(),
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

function applyEvent(state: RunState, event: RuntimeEvent): RunState {
  switch (event.type) {
    case 'run_started':
      throw illegalTransition(state, event)
    case 'run_resumed':
      return applyRunResumed(state, event)
    case 'run_finished':
      return applyRunFinished(state, event)
    case 'history_carried':
      return applyHistoryCarried(state, event)
    case 'history_edited':
      return applyHistoryEdited(state, event)
    case 'input_received':
      return applyInputReceived(state, event)
    case 'input_settled':
      return applyInputSettled(state, event)
    case 'model_call_started':
      return applyModelCallStarted(state, event)
    case 'assistant_started':
      return withAttempt(state, event, (attempt) => ({
        ...attempt,
        ...omitUndefined({ providerMessageId: event.providerMessageId }),
      }))
    case 'assistant_text_delta':
    case 'assistant_reasoning_delta':
      return withAttempt(state, event, (attempt) => withDelta(attempt, event))
    case 'tool_input_delta':
      return withAttempt(state, event, (attempt) => withToolInput(attempt, event))
    case 'tool_request_ready':
      return withAttempt(state, event, (attempt) => withRequest(state, attempt, event))
    case 'usage_updated':
      return applyUsageUpdated(state, event)
    case 'assistant_message_finished':
      return applyMessageFinished(state, event)
    case 'model_stream_failed':
      return applyModelStreamFailed(state, event)
    case 'tool_requests_collected':
    case 'approval_requested':
    case 'approval_decided':
    case 'tool_started':
    case 'tool_progress':
    case 'tool_deferred':
    case 'tool_attempt_failed':
    case 'tool_result':
    case 'tool_results_injected':
      return foldToolCalls(state, event)
    case 'context_compacted':
      return applyContextCompacted(state, event)
    case 'compaction_started':
      return applyCompactionStarted(state, event)
    case 'agent_handed_off':
      return applyAgentHandedOff(state, event)
    case 'guardrail_tripped':
      return applyGuardrailTripped(state, event)
    case 'guardrails_checked':
      return applyGuardrailsChecked(state, event)
    case 'output_checked':
      return applyOutputChecked(state, event)
    case 'limit_reached':
      return { ...state, metLimit: { limit: event.limit, policy: event.policy, at: event.at } }
    case 'limit_raised':
      return applyLimitRaised(state, event)
    case 'cancel_requested':
      return { ...state, cancel: { at: event.at, ...omitUndefined({ by: event.by, reason: event.reason }) } }
  }
}

/** A model that took over stays in use as long as the agent's code names it. */
function withKnownModel(state: RunState, definition: AgentDefinition): RunState {
  const { model, ...rest } = state
  return model === undefined || namesModel(definition, model) ? state : rest
}

function applyRunResumed(state: RunState, event: EventOf<'run_resumed'>): RunState {
  const definition = event.definition ?? state.definition
  const interrupted = requiresEffects(state)
  const known = new Set((definition.guardrails ?? []).map(({ name }) => name))
  const takeOvers = state.takeOvers + (interrupted ? 1 : 0)
  const next = withInputCheck({ ...withKnownModel(state, definition), definition, takeOvers }, (name) =>
    known.has(name),
  )
  const left = next.compacting
    ? { ...next, compacting: { ...next.compacting, interrupted: true as const } }
    : next
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
  return withUserMessage(rest, input.message)
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
