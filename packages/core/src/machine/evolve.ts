import { IllegalTransitionError } from '../errors.ts'
import type { EventOf, RuntimeEvent } from '../vocabulary/event.ts'
import { emptyCallLog } from './call-log.ts'
import { effectsOf, isSuspended } from './effects-of.ts'
import { evolveCalls, requireClosed, withDelta, withRequest, withToolInput } from './evolve-calls.ts'
import { attemptFailed, calling, replied, withAttempt, withUsage } from './evolve-model.ts'
import { appendMessage, emptyHistory, messagesOf } from './history.ts'
import { illegal } from './illegal.ts'
import { factsOf, withMessage } from './run-facts.ts'
import type { DoneState, RunState } from './state.ts'
import { definitionTokens, messageTokens } from './token-estimate.ts'
import { transitionTable } from './transition-table.ts'

/**
 * The fold: the state before an event, and the event, to the state after it. `undefined` is the state before the
 * first event. Pure and total: an event that is not legal where it stands throws `IllegalTransitionError`.
 */
export function evolve(state: RunState | undefined, event: RuntimeEvent): RunState {
  if (state === undefined) return firstState(event)
  if (!Object.hasOwn(transitionTable[state.phase], event.type)) throw illegal(state, event)
  requireOrder(state, event)
  const { seq, epoch, at, turn } = event
  return step(
    { ...state, seq, epoch, at, turn, waitedMs: state.waitedMs + waitedBefore(state, event) },
    event,
  )
}

/** How long nothing was in flight before this event, in milliseconds: a person was waited for, or a process. */
function waitedBefore(state: RunState, event: RuntimeEvent): number {
  const asleep = event.type === 'run_resumed' || isSuspended(state)
  return asleep ? Math.max(0, event.at - state.at) : 0
}

function firstState(event: RuntimeEvent): RunState {
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
    ...(event.sessionId !== undefined && { sessionId: event.sessionId }),
    ...(event.parent !== undefined && { parent: event.parent }),
    history: emptyHistory(),
    totals: {
      ...{ turns: 0, toolCalls: 0, toolCallsByTool: {}, repeated: 0 },
      ...{ usage: {}, settledUsage: {}, latestUsage: {} },
    },
    contextTokens: definitionTokens(event.definition),
    waitedMs: 0,
    callLog: emptyCallLog(),
    errorStreaks: {},
    pendingInputs: [],
    inputSinceReply: false,
    takeOvers: 0,
  }
}

/** Law 4, and that a call's events stand in its own turn (law 1). */
function requireOrder(state: RunState, event: RuntimeEvent): void {
  if (event.runId !== state.runId) throw illegal(state, event, `it belongs to run ${event.runId}`)
  if (event.seq !== state.seq + 1) throw illegal(state, event, `seq ${event.seq} follows ${state.seq}`)
  if (event.epoch < state.epoch) throw illegal(state, event, `epoch ${event.epoch} follows ${state.epoch}`)
  const startsTurn = event.type === 'model_call_started' && event.attempt === 1
  if (event.turn !== state.turn + (startsTurn ? 1 : 0)) {
    throw illegal(state, event, `turn ${event.turn} follows ${state.turn}`)
  }
}

function step(state: RunState, event: RuntimeEvent): RunState {
  switch (event.type) {
    case 'run_started':
      throw illegal(state, event)
    case 'run_resumed':
      return resumed(state, event)
    case 'run_finished':
      return finished(state, event)
    case 'input_received':
      return received(state, event)
    case 'input_settled':
      return inputSettled(state, event)
    case 'model_call_started':
      return calling(state, event)
    case 'assistant_started':
      return withAttempt(state, event, (attempt) =>
        event.providerMessageId === undefined
          ? attempt
          : { ...attempt, providerMessageId: event.providerMessageId },
      )
    case 'assistant_text_delta':
    case 'assistant_reasoning_delta':
      return withAttempt(state, event, (attempt) => withDelta(attempt, event))
    case 'tool_input_delta':
      return withAttempt(state, event, (attempt) => withToolInput(attempt, event.part))
    case 'tool_request_ready':
      return withAttempt(state, event, (attempt) => withRequest(state, attempt, event))
    case 'usage_updated':
      return withUsage(state, event)
    case 'assistant_message_finished':
      return replied(state, event)
    case 'model_stream_failed':
      return attemptFailed(state, event)
    case 'tool_requests_collected':
    case 'approval_requested':
    case 'approval_decided':
    case 'tool_started':
    case 'tool_progress':
    case 'tool_deferred':
    case 'tool_result':
    case 'tool_results_injected':
      return evolveCalls(state, event)
    case 'context_compacted':
      return compacted(state, event)
    case 'agent_handed_off':
      return { ...state, agent: event.to, definition: event.definition }
    case 'guardrail_tripped':
      return state
    case 'limit_reached':
      return { ...state, metLimit: { limit: event.limit, policy: event.policy, at: event.at } }
    case 'limit_raised':
      return raised(state, event)
    case 'cancel_requested': {
      const { by, reason } = event
      return {
        ...state,
        cancel: { at: event.at, ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) },
      }
    }
  }
}

/** The history with its older messages replaced: cut where no call is parted from its result (law 3). */
function compacted(state: RunState, event: EventOf<'context_compacted'>): RunState {
  const messages = messagesOf(state.history)
  const { replacedMessages, summary } = event
  if (replacedMessages > messages.length || messages[replacedMessages]?.role === 'tool') {
    throw illegal(state, event, 'it would part a message from its results')
  }
  const kept = [summary, ...messages.slice(replacedMessages)]
  const contextTokens = kept
    .map(messageTokens)
    .reduce((sum, tokens) => sum + tokens, definitionTokens(state.definition))
  const history = kept.reduce(appendMessage, emptyHistory())
  const shorter = { contextTokens, history, compactedTurn: state.turn }
  if (state.phase !== 'streaming' || !state.attempt.failed) return { ...state, ...shorter }
  const failed = { ...state.attempt.failed, shortened: true as const }
  return { ...state, ...shorter, attempt: { ...state.attempt, failed } }
}

function resumed(state: RunState, event: EventOf<'run_resumed'>): RunState {
  const definition = event.definition ?? state.definition
  const interrupted = effectsOf(state).length > 0
  const next = { ...state, definition, takeOvers: state.takeOvers + (interrupted ? 1 : 0) }
  if (next.phase !== 'executing') return next
  const calls = next.calls.map((call) =>
    call.status === 'started' ? { ...call, status: 'in_doubt' as const } : call,
  )
  return { ...next, calls }
}

function received(state: RunState, event: EventOf<'input_received'>): RunState {
  const { message, delivery, receipt } = event
  if (delivery === 'start') return { ...withMessage(state, message), inputSinceReply: true }
  if (receipt === undefined || state.pendingInputs.some((input) => input.receipt === receipt)) {
    throw illegal(state, event, 'input that comes later needs a receipt of its own')
  }
  return { ...state, pendingInputs: [...state.pendingInputs, { receipt, delivery, message }] }
}

function inputSettled(state: RunState, event: EventOf<'input_settled'>): RunState {
  const input = state.pendingInputs.find(({ receipt }) => receipt === event.receipt)
  if (input === undefined) throw illegal(state, event, `no input ${event.receipt} waits`)
  const rest = { ...state, pendingInputs: state.pendingInputs.filter((other) => other !== input) }
  if (!event.delivered) return rest
  requireClosed(state, event)
  if (state.phase === 'streaming') throw illegal(state, event, 'a model call is in flight')
  return { ...withMessage(rest, input.message), inputSinceReply: true }
}

function finished(state: RunState, event: EventOf<'run_finished'>): DoneState {
  requireClosed(state, event)
  const [input] = state.pendingInputs
  if (input) throw illegal(state, event, `input ${input.receipt} has no receipt`)
  const { reason, detail } = event
  return { ...factsOf(state), phase: 'done', reason, ...(detail !== undefined && { detail }) }
}

function raised(state: RunState, event: EventOf<'limit_raised'>): RunState {
  const limits = { ...state.limits, [event.limit]: event.max }
  if (state.metLimit?.limit !== event.limit) return { ...state, limits }
  const { metLimit: _met, ...rest } = state
  return { ...rest, limits }
}
