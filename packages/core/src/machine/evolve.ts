import { IllegalTransitionError } from '../errors.ts'
import type { AssistantMessage, Message } from '../vocabulary/content.ts'
import type { EventOf, RuntimeEvent } from '../vocabulary/event.ts'
import { addUsage } from '../vocabulary/usage.ts'
import { emptyCallLog } from './call-log.ts'
import { isSuspended } from './effects-of.ts'
import { evolveCalls, requireClosed, withDelta, withRequest, withToolInput } from './evolve-calls.ts'
import { appendMessage, emptyHistory, messagesOf } from './history.ts'
import type { Attempt, CollectingState, DoneState, RunFacts, RunState, StreamingState } from './state.ts'
import { definitionTokens, messageTokens } from './token-estimate.ts'
import { legalEvents, transitionTable } from './transition-table.ts'

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

/** Refuses an event, saying why. */
export function illegal(state: RunState, event: RuntimeEvent, detail?: string): IllegalTransitionError {
  return new IllegalTransitionError(state.phase, event.type, legalEvents(state.phase), detail)
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
      return withMessage(state, event.message)
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
    case 'tool_result':
    case 'tool_results_injected':
      return evolveCalls(state, event)
    case 'context_compacted': {
      const kept = [event.summary, ...messagesOf(state.history).slice(event.replacedMessages)]
      const contextTokens = kept
        .map(messageTokens)
        .reduce((sum, tokens) => sum + tokens, definitionTokens(state.definition))
      return { ...state, contextTokens, history: kept.reduce(appendMessage, emptyHistory()) }
    }
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

function resumed(state: RunState, event: EventOf<'run_resumed'>): RunState {
  const definition = event.definition ?? state.definition
  if (state.phase !== 'executing') return { ...state, definition }
  const calls = state.calls.map((call) =>
    call.status === 'started' ? { ...call, status: 'in_doubt' as const } : call,
  )
  return { ...state, definition, calls }
}

function finished(state: RunState, event: EventOf<'run_finished'>): DoneState {
  requireClosed(state, event)
  const { reason, detail } = event
  return { ...factsOf(state), phase: 'done', reason, ...(detail !== undefined && { detail }) }
}

function calling(state: RunState, event: EventOf<'model_call_started'>): StreamingState {
  requireClosed(state, event)
  const again = state.phase === 'streaming'
  if (again && state.attempt.failed === undefined) {
    throw illegal(state, event, `attempt ${state.attempt.number} of turn ${state.turn} has not ended`)
  }
  const number = again ? state.attempt.number + 1 : 1
  if (event.attempt !== number) throw illegal(state, event, `attempt ${event.attempt} where ${number} is due`)
  const { totals } = state
  const attempt: Attempt = {
    number,
    model: event.model,
    toolChoice: event.toolChoice,
    finalizing: event.finalizing,
    ...(event.maxOutputTokens !== undefined && { maxOutputTokens: event.maxOutputTokens }),
    requestDigest: event.requestDigest,
    drafts: [],
    callParts: [],
    calls: [],
  }
  return {
    ...factsOf(state),
    phase: 'streaming',
    attempt,
    failures: again ? state.failures : 0,
    totals: {
      ...totals,
      turns: totals.turns + (again ? 0 : 1),
      settledUsage: totals.usage,
      latestUsage: {},
      ...(totals.costUsd !== undefined && { settledCostUsd: totals.costUsd }),
    },
  }
}

function withMessage(state: RunState, message: Message): RunState {
  const contextTokens = state.contextTokens + messageTokens(message)
  return { ...state, contextTokens, history: appendMessage(state.history, message) }
}

/** The state without what belongs to its phase. */
function factsOf(state: RunState): RunFacts {
  const { phase: _phase, ...facts } = state
  for (const own of ['attempt', 'failures', 'reply', 'calls', 'reason', 'detail']) {
    delete (facts as Record<string, unknown>)[own]
  }
  return facts
}

/** Changes the attempt that is under way; an event of another attempt, or of one that has failed, is illegal. */
function withAttempt(
  state: RunState,
  event: RuntimeEvent & { readonly attempt: number },
  change: (attempt: Attempt) => Attempt,
): RunState {
  if (state.phase !== 'streaming') throw illegal(state, event)
  if (state.attempt.failed || event.attempt !== state.attempt.number) {
    throw illegal(state, event, `it is of attempt ${event.attempt}, which is not under way`)
  }
  return { ...state, attempt: change(state.attempt) }
}

function withUsage(state: RunState, event: EventOf<'usage_updated'>): RunState {
  const { totals } = state
  const usage = addUsage(totals.settledUsage, event.usage)
  const costUsd = event.costUsd === undefined ? totals.costUsd : (totals.settledCostUsd ?? 0) + event.costUsd
  const latestUsage = event.usage
  return { ...state, totals: { ...totals, usage, latestUsage, ...(costUsd !== undefined && { costUsd }) } }
}

function replied(state: RunState, event: EventOf<'assistant_message_finished'>): CollectingState {
  if (state.phase !== 'streaming') throw illegal(state, event)
  const { attempt } = state
  if (event.attempt !== attempt.number) throw illegal(state, event, `it is of attempt ${event.attempt}`)
  const asked = attempt.calls.map((call) => call.toolCallId).join()
  const kept = event.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : [])).join()
  if (asked !== kept) throw illegal(state, event, 'its calls are not those that were requested')
  const { parts, stopReason, partial } = event
  const { inputTokens, outputTokens } = state.totals.latestUsage
  const message: AssistantMessage = { role: 'assistant', parts, model: attempt.model, stopReason, partial }
  return {
    ...factsOf(state),
    phase: 'collecting',
    reply: {
      message,
      finalizing: attempt.finalizing,
      ...(attempt.failed && { failure: attempt.failed.failure }),
    },
    calls: attempt.calls,
    // A reply without any content is no message that a model could be shown.
    history: parts.length === 0 ? state.history : appendMessage(state.history, message),
    contextTokens: (inputTokens ?? state.contextTokens) + (outputTokens ?? messageTokens(message)),
  }
}

function attemptFailed(state: RunState, event: EventOf<'model_stream_failed'>): RunState {
  const { failure, retryAt } = event
  const failed = { failure, ...(retryAt !== undefined && { retryAt }) }
  const next = withAttempt(state, event, (attempt) => ({ ...attempt, failed })) as StreamingState
  return { ...next, failures: next.failures + (failure.class === 'interrupted' ? 0 : 1) }
}

function raised(state: RunState, event: EventOf<'limit_raised'>): RunState {
  const limits = { ...state.limits, [event.limit]: event.max }
  if (state.metLimit?.limit !== event.limit) return { ...state, limits }
  const { metLimit: _met, ...rest } = state
  return { ...rest, limits }
}
