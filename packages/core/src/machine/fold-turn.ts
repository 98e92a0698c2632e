import {
  type AssistantMessage,
  type Outcome,
  isSameModel,
  joinText,
  type ToolResult,
} from '../events/content.ts'
import { findCause, type CollectedCall, type EventOf, type RuntimeEvent } from '../events/event.ts'
import { addUsage } from '../events/usage.ts'
import { computeDigest } from '../values/digest.ts'
import { getOwn, omitUndefined } from '../values/json.ts'
import { findCall, findCallPlace, openTurnCalls, toBackgroundInputId, toCallKey } from './calls.ts'
import { withStanding } from './approvals.ts'
import { computeAnswerDigest, appendMessage, endsInNews, logCall, showsOtherMessages } from './history.ts'
import { readWrittenText, toNextTurnParts } from './reply.ts'
import { toShownResult } from './request.ts'
import { isHeldWrite } from './retry.ts'
import {
  type Attempt,
  type BackgroundCall,
  type Call,
  type CallStatus,
  type CollectingState,
  type ExecutingState,
  type InjectingState,
  type PartDraft,
  type RunState,
  type StreamingState,
  toBase,
  withChildTotals,
  withMessage,
  withToolSpending,
} from './state.ts'
import { estimateMessageTokens, estimateTokens, filterOfferedTools, withSource } from './tokens.ts'
import { createIllegalTransition } from './transition-table.ts'

/** A model call starts: the first attempt of a turn, or the next one of the same. */
export function applyModelCallStarted(state: RunState, event: EventOf<'model_call_started'>): StreamingState {
  requireClosed(state, event)
  const again = state.phase === 'streaming'
  if (again && state.attempt.failed === undefined) {
    throw createIllegalTransition(
      state,
      event,
      `attempt ${state.attempt.number} of turn ${state.turn} has not ended`,
    )
  }
  const number = again ? state.attempt.number + 1 : 1
  if (event.attempt !== number)
    throw createIllegalTransition(state, event, `attempt ${event.attempt} where ${number} is due`)
  const { totals } = state
  const attempt: Attempt = {
    number,
    model: event.model,
    toolChoice: event.toolChoice,
    finalizing: event.finalizing,
    ...omitUndefined({ maxOutputTokens: event.maxOutputTokens, change: event.change }),
    grant: event.grant,
    requestDigest: event.requestDigest,
    drafts: [],
    streamedTokens: 0,
    callParts: [],
    calls: [],
  }
  return {
    ...withSource(toBase(state), event.change?.sourced),
    phase: 'streaming',
    attempt,
    failures: again && isSameModel(state.attempt.model, event.model) ? state.failures : 0,
    turnStartedAt: again ? state.turnStartedAt : event.at,
    // A fallback stays in use; the change of a turn applies to that turn only.
    ...(again && { model: event.model }),
    totals: {
      ...totals,
      turns: totals.turns + (again ? 0 : 1),
      settledUsage: totals.usage,
      latestUsage: {},
      ...omitUndefined({ settledCostUsd: totals.costUsd }),
    },
  }
}

/** The attempt that is under way; an event of another attempt, or of one that has failed, is illegal. */
function requireOpenAttempt(state: RunState, event: RuntimeEvent & { readonly attempt: number }): Attempt {
  if (state.phase !== 'streaming') throw createIllegalTransition(state, event)
  if (state.attempt.failed || event.attempt !== state.attempt.number) {
    throw createIllegalTransition(state, event, `it is of attempt ${event.attempt}, which is not under way`)
  }
  return state.attempt
}

/** Changes the attempt that is under way. */
export function withAttempt(
  state: RunState,
  event: RuntimeEvent & { readonly attempt: number },
  change: Partial<Attempt>,
): StreamingState {
  const attempt = requireOpenAttempt(state, event)
  return { ...(state as StreamingState), attempt: { ...attempt, ...change } }
}

/** Adds the usage of the latest attempt, less its earlier reports. */
export function applyUsageUpdated(state: RunState, event: EventOf<'usage_updated'>): RunState {
  const { totals } = state
  const { contextTokens } = event
  const usage = addUsage(totals.settledUsage, event.usage)
  const costUsd = event.costUsd === undefined ? totals.costUsd : (totals.settledCostUsd ?? 0) + event.costUsd
  const latestUsage = event.usage
  const next = { ...state, totals: { ...totals, usage, latestUsage, ...omitUndefined({ costUsd }) } }
  if (next.phase !== 'streaming' || contextTokens === undefined) return next
  return { ...next, attempt: { ...next.attempt, contextTokens } }
}

/** The reply enters the history, and its calls are to be collected. */
export function applyMessageFinished(
  state: RunState,
  event: EventOf<'assistant_message_finished'>,
): CollectingState {
  if (state.phase !== 'streaming') throw createIllegalTransition(state, event)
  const { attempt } = state
  if (event.attempt !== attempt.number)
    throw createIllegalTransition(state, event, `it is of attempt ${event.attempt}`)
  const called = event.parts.filter((part) => part.type === 'tool_call')
  if (joinIds(called) !== joinIds(attempt.calls))
    throw createIllegalTransition(state, event, 'its calls are not those that were requested')
  const { parts, stopReason, partial } = event
  const message: AssistantMessage = { role: 'assistant', parts, model: attempt.model, stopReason, partial }
  const { output: _before, keptState: _earlier, ...facts } = toBase(state)
  const { providerState: keptState } = event
  const { nextTurn } = state.definition.policy?.outputStream ?? {}
  const shownLater: AssistantMessage = { ...message, parts: toNextTurnParts(nextTurn, event) }
  // A reply without any content is not a message that a model could be shown.
  const isInHistory = shownLater.parts.length > 0
  return {
    ...facts,
    phase: 'collecting',
    reply: {
      message,
      finalizing: attempt.finalizing,
      ...omitUndefined({ failure: attempt.failed?.failure, offered: readOffered(state) }),
      ...omitUndefined({ refusal: event.refusal }),
      ...(!isInHistory && parts.length > 0 && { leftOut: true as const }),
    },
    calls: attempt.calls,
    history: isInHistory ? appendMessage(state.history, shownLater) : state.history,
    ...omitUndefined({ keptState }),
    inputSinceReply: false,
    takeOvers: 0,
    lastText: parts.length === 0 ? state.lastText : joinText(parts),
    ...computeContextTokens(state, shownLater),
  }
}

/** The names of the tools that the attempt offered, where these are not those of the definition. */
function readOffered(state: StreamingState): readonly string[] | undefined {
  const { tools } = state.attempt.change ?? {}
  return tools ?? (state.sourced && filterOfferedTools(state, undefined).map(({ name }) => name))
}

/** The largest factor that corrects estimates: a report beyond it counts something else, or is wrong. */
const MAX_ESTIMATE_FACTOR = 8
/** Fewer estimated tokens than this say nothing about how good the estimate is. */
const LEARNING_TOKENS_MIN = 100

/** Estimates the tokens of the next request, and corrects the factor of estimates by the provider's report. */
function computeContextTokens(
  state: StreamingState,
  message: AssistantMessage,
): Pick<RunState, 'contextTokens' | 'reportedTokens' | 'estimateFactor'> {
  const { estimateFactor } = state
  const { inputTokens, outputTokens } = state.totals.latestUsage
  const outputEstimate = Math.ceil(estimateMessageTokens(message) * estimateFactor)
  const contextTokens =
    state.attempt.contextTokens ?? (inputTokens ?? state.contextTokens) + (outputTokens ?? outputEstimate)
  if (inputTokens === undefined || state.attempt.contextTokens !== undefined)
    return { contextTokens, reportedTokens: state.reportedTokens, estimateFactor }
  const estimated = state.contextTokens - state.reportedTokens
  const real = inputTokens - state.reportedTokens
  const isSignificant = estimated >= LEARNING_TOKENS_MIN && !showsOtherMessages(state.attempt.change)
  const learned = isSignificant ? (estimateFactor * real) / estimated : estimateFactor
  return {
    contextTokens,
    reportedTokens: contextTokens,
    estimateFactor: Math.min(MAX_ESTIMATE_FACTOR, Math.max(1, learned)),
  }
}

/** The attempt has failed; what follows is the controller's to say. */
export function applyModelStreamFailed(state: RunState, event: EventOf<'model_stream_failed'>): RunState {
  const { failure, retryAt } = event
  // That a process stopped is not a failure of its model.
  const stopped = findCause(event) === 'resume'
  const failed = { failure, ...omitUndefined({ retryAt }) }
  const next = withAttempt(state, event, { failed })
  return { ...next, failures: next.failures + (stopped ? 0 : 1) }
}

/** Applies arrived text or reasoning: appended to the same part, or replacing it. */
export function applyDelta(
  state: RunState,
  event: EventOf<'assistant_text_delta'> | EventOf<'assistant_reasoning_delta'>,
): RunState {
  const { drafts, streamedTokens } = requireOpenAttempt(state, event)
  const kind = event.type === 'assistant_text_delta' ? 'text' : 'reasoning'
  const index = drafts.findLastIndex((draft) => draft.part === event.part && draft.kind === kind)
  const draft = drafts[index]
  return withAttempt(state, event, {
    streamedTokens: streamedTokens + estimateTokens(event.written ?? event.text),
    drafts: draft
      ? drafts.with(index, withMoreText(draft, event))
      : [...drafts, createDraft(event.part, kind, event)],
  })
}

type MoreText = Pick<EventOf<'assistant_text_delta'>, 'text' | 'written' | 'replaces'>

function createDraft(part: number, kind: PartDraft['kind'], { text, written }: MoreText): PartDraft {
  return { part, kind, text, ...omitUndefined({ written }) }
}

function withMoreText(draft: PartDraft, event: MoreText): PartDraft {
  const { part, kind } = draft
  if (event.replaces) return createDraft(part, kind, event)
  const text = draft.text + event.text
  const differs = draft.written !== undefined || event.written !== undefined
  const written = differs ? readWrittenText(draft) + (event.written ?? event.text) : undefined
  return createDraft(part, kind, { text, ...omitUndefined({ written }) })
}

/** More of a call's input came. With the first of it, the call takes its place among the calls. */
export function applyToolInput(state: RunState, event: EventOf<'tool_input_delta'>): RunState {
  const { callParts, streamedTokens } = requireOpenAttempt(state, event)
  return withAttempt(state, event, {
    callParts: withPart(callParts, event.part),
    streamedTokens: streamedTokens + estimateTokens(event.text),
  })
}

/** A request is whole: it takes its place among the calls of the reply. Its place and its id must be new. */
export function applyToolRequest(state: RunState, event: EventOf<'tool_request_ready'>): RunState {
  const { toolCallId, part, providerCallId, name, input, malformed, opaque } = event
  const { calls: earlier, callParts, streamedTokens } = requireOpenAttempt(state, event)
  // By place in the reply: the order in which the message names them.
  const place = earlier.findLastIndex((known) => known.part < part) + 1
  if (findCallPlace(earlier, toolCallId) !== -1 || earlier[place]?.part === part) {
    throw createIllegalTransition(state, event, `call ${toolCallId} or part ${part} was requested before`)
  }
  const call: Call = {
    toolCallId,
    part,
    providerCallId,
    name,
    input,
    status: 'requested',
    attempts: 0,
    ...(event.removed && { inputRemoved: true as const }),
    ...omitUndefined({ malformed, opaque }),
  }
  const calls = earlier.toSpliced(place, 0, call)
  // An input that was not streamed is counted here.
  const isStreamed = callParts.includes(part)
  const tokens = isStreamed ? 0 : estimateTokens(malformed?.text ?? JSON.stringify(input))
  return withAttempt(state, event, {
    callParts: withPart(callParts, part),
    calls,
    streamedTokens: streamedTokens + tokens,
  })
}

/** The parts that hold calls with one more, where it is new. */
function withPart(callParts: readonly number[], part: number): readonly number[] {
  return callParts.includes(part) ? callParts : [...callParts, part]
}

/** The state in which all that counted as a repeat counts no more. */
export function withChange(state: RunState): RunState {
  return { ...withStart(state), errorStreaks: {} }
}

export function applyToolDeferred(state: RunState, event: EventOf<'tool_deferred'>): RunState {
  const { receipt: externalId, deadlineAt } = event
  const deferred = { externalId, ...omitUndefined({ deadlineAt }) }
  return changeCall(state, event, ['started'], (call) => ({ ...call, status: 'deferred', deferred }))
}

export function applyToolProgress(state: RunState, event: EventOf<'tool_progress'>): RunState {
  const { spent } = event
  const next = changeCall(state, event, ['started'], (call) =>
    spent === undefined ? call : { ...call, modelCalls: (call.modelCalls ?? 0) + 1 },
  )
  return spent === undefined ? next : { ...next, totals: withToolSpending(next.totals, spent) }
}

export function applyToolResult(state: RunState, event: EventOf<'tool_result'>): RunState {
  const { outcome, name, child } = event
  const settle = (call: Call): Call => {
    if (name !== call.name) throw createIllegalTransition(state, event, `the call's tool is ${call.name}`)
    if (call.status === 'deferred' && outcome === 'cancelled' && call.child === undefined) {
      throw createIllegalTransition(state, event, `call ${call.toolCallId} is deferred`)
    }
    return { ...call, status: 'settled', result: toResultForModel(event) }
  }
  const begun = event.background ? findCall(state, event.toolCallId) : undefined
  const answered = changeCall(state, event, endable[outcome], settle)
  if (begun && begun.background === undefined)
    throw createIllegalTransition(state, event, 'its tool does not work in the background')
  const { turn, agent } = state
  const settled = begun
    ? { ...answered, background: [...(state.background ?? []), { ...begun, turn, agent }] }
    : answered
  // A child run's usage counts as the run's own.
  const charged = child ? { ...settled, totals: withChildTotals(settled.totals, child) } : settled
  const next = withReuse(charged, event)
  return { ...next, takeOvers: 0, ...findAnswer(next, event) }
}

/** Law 1, for work beside the run: it ends once, and its result waits for its place in the history. */
export function applyBackgroundEnded(state: RunState, event: EventOf<'background_ended'>): RunState {
  const { toolCallId, message } = event
  const call = state.background?.find((each) => each.toolCallId === toolCallId)
  if (call === undefined)
    throw createIllegalTransition(state, event, `no call ${toolCallId} goes on in the background`)
  requireAttempt(state, event, call.attempts)
  const { background = [], ...rest } = state
  const left = background.filter((each) => each !== call)
  const next = { ...rest, ...(left.length > 0 && { background: left }), takeOvers: 0 } as RunState
  if (message === undefined) return next
  const input = { inputId: toBackgroundInputId(toolCallId), delivery: 'steer' as const, message }
  return { ...next, pendingInputs: [...next.pendingInputs, input] }
}

/** Law 10: only a call whose tool declares retries is tried again after a failure. */
export function applyAttemptFailed(state: RunState, event: EventOf<'tool_attempt_failed'>): RunState {
  return changeCall(state, event, ['started'], (call) => {
    requireAttempt(state, event, call.attempts)
    const { retry, tries } = call
    if (retry === undefined || tries === undefined)
      throw createIllegalTransition(state, event, 'its tool declares no retries')
    if (tries.failures + 1 >= retry.maxAttempts) {
      throw createIllegalTransition(state, event, `its tool allows ${retry.maxAttempts} attempts`)
    }
    const { outcome, content, retryAt } = event
    const failed = { outcome, content, retryAt }
    return { ...call, status: 'to_retry', tries: { ...tries, failures: tries.failures + 1, failed } }
  })
}

export function applyApprovalRequested(state: RunState, event: EventOf<'approval_requested'>): RunState {
  const askable = ['to_ask', 'in_doubt', 'ready', 'to_retry', 'awaiting_approval'] as const
  return changeCall(
    state,
    event,
    askable,
    ({ askedElsewhere, expiresAt: _past, approvals: _before, ...call }) => {
      requireAttempt(state, event, call.attempts + 1)
      if (call.status === 'awaiting_approval' && askedElsewhere === undefined) {
        throw createIllegalTransition(state, event, 'it is asked about already')
      }
      const mayRun = call.status === 'ready' || call.status === 'to_retry'
      if (mayRun && !isHeldWrite(state, call)) throw createIllegalTransition(state, event, 'it may run')
      const { expiresAt, reason: askReason } = event
      const isShared = state.parent?.relation === 'fork' && event.seq <= state.parent.seq
      return {
        ...call,
        status: 'awaiting_approval',
        // The time to decide was that of the other run.
        ...(expiresAt !== undefined && (isShared ? { askedElsewhere: true } : { expiresAt })),
        ...omitUndefined({ askReason }),
      }
    },
  )
}

/** A tool's own ending in a fork was served from the record, or the fork goes its own way from here. */
function withReuse(state: RunState, event: EventOf<'tool_result'>): RunState {
  const { parent, fork = { reused: [], own: [] } } = state
  const { reused, durationMs, outcome, seq } = event
  if (parent?.relation !== 'fork' || seq <= parent.seq) return state
  if (reused !== undefined) return { ...state, fork: { ...fork, reused: [...fork.reused, reused] } }
  if (durationMs === undefined && outcome !== 'success' && outcome !== 'failed') return state
  const call = findCall(state, event.toolCallId)
  const own = call ? [...fork.own, { name: call.name, inputDigest: computeDigest(call.input) }] : fork.own
  const { divergedIn = durationMs === undefined ? undefined : state.turn } = fork
  return { ...state, fork: { ...fork, own, ...omitUndefined({ divergedIn }) } }
}

/** Logs the answer of the tool itself, with which later calls are compared, and how often it was served. */
function findAnswer(
  state: RunState,
  event: EventOf<'tool_result'>,
): Partial<Pick<RunState, 'standstill' | 'callLog' | 'errorStreaks' | 'polls'>> {
  const { toolCallId, name, outcome, content } = event
  const { standstill, callLog, errorStreaks } = state
  // A handle is no answer.
  if (event.background) return {}
  if (outcome === 'repeated') return { standstill: { ...standstill, served: standstill.served + 1 } }
  const call = findCall(state, toolCallId)
  if (call === undefined || !mayHaveRun.has(outcome)) return {}
  const poll = typeof call.repeats === 'object' ? toCallKey(call) : undefined
  const polled = poll === undefined ? {} : { polls: { ...state.polls, [poll]: event.at } }
  if (call.repeats !== undefined && call.effect === 'read') return polled
  const isAnswer = outcome !== 'interrupted'
  const errors =
    outcome === 'success' || !isAnswer
      ? withoutErrors(errorStreaks, name)
      : withError(errorStreaks, name, computeAnswerDigest(outcome, content))
  if (call.effect !== 'read') {
    // Its effect may have come after its start, while reads of the turn were answered. What failed again and again did not help.
    const { standstill: begun } = withStart(state)
    const changed = { ...polled, standstill: begun }
    if (outcome === 'success') return { ...changed, errorStreaks: {} }
    return { ...changed, errorStreaks: call.repeats === undefined ? errors : errorStreaks }
  }
  if (!isAnswer) return {}
  const { inputDigest = computeDigest(call.input) } = call
  const result = toShownResult(call) ?? toResultForModel(event)
  // Of a result that is shown in another form, the log keeps that form and the digest of the whole.
  const resultDigest = result.content === content ? undefined : computeAnswerDigest(outcome, content)
  const logged = { toolCallId, name, inputDigest, result, ...omitUndefined({ resultDigest }) }
  const log = logCall(callLog, logged)
  const news = endsInNews(log)
  return {
    callLog: log,
    standstill: news
      ? { ...standstill, from: Math.max(standstill.from, standstill.replyFrom), served: 0 }
      : standstill,
    errorStreaks: errors,
  }
}

/** Outcomes of calls whose tool may have done something. */
const mayHaveRun: ReadonlySet<Outcome> = new Set(['success', 'failed', 'timed_out', 'interrupted'])

type ErrorStreaks = RunState['errorStreaks']

function withError(streaks: ErrorStreaks, name: string, resultDigest: string): ErrorStreaks {
  const streak = getOwn(streaks, name)
  const count = streak?.resultDigest === resultDigest ? streak.count + 1 : 1
  return { ...streaks, [name]: { resultDigest, count } }
}

function withoutErrors(streaks: ErrorStreaks, name: string): ErrorStreaks {
  if (!Object.hasOwn(streaks, name)) return streaks
  const { [name]: _ended, ...rest } = streaks
  return rest
}

const unstarted: readonly CallStatus[] = ['requested', 'to_settle', 'to_ask', 'awaiting_approval', 'ready']
const begun: readonly CallStatus[] = ['started', 'in_doubt']

/** Law 2: which outcomes may end a call of each status. No call ends twice: `settled` is in no list. */
const endable: { readonly [O in Outcome]: readonly CallStatus[] } = {
  success: [...begun, 'deferred'],
  failed: [...begun, 'deferred', 'to_retry'],
  timed_out: ['started', 'deferred', 'to_retry'],
  interrupted: [...begun, 'deferred', 'ready', 'to_retry', 'awaiting_approval', 'to_settle'],
  cancelled: [...unstarted, ...begun, 'deferred'],
  // An approver's edited input is checked when the tool starts with it.
  invalid_input: [...unstarted, 'started'],
  unknown_tool: unstarted,
  denied: unstarted,
  repeated: unstarted,
  limit_reached: unstarted,
  skipped: unstarted,
}

/** A result as the model reads it: the history, guardrails and later calls see no other. */
function toResultForModel({ toolCallId, name, outcome, ...contents }: EventOf<'tool_result'>): ToolResult {
  return { toolCallId, name, outcome, content: contents.shown ?? contents.projected ?? contents.content }
}

export function applyRequestsCollected(
  state: RunState,
  event: EventOf<'tool_requests_collected'>,
): ExecutingState {
  if (state.phase !== 'collecting') throw createIllegalTransition(state, event)
  if (joinIds(event.calls) !== joinIds(state.calls) || state.calls.length === 0) {
    throw createIllegalTransition(state, event, 'it does not name every call of the message, in order')
  }
  const isRemoved = event.removed !== undefined
  const calls = state.calls.map((call, index) =>
    withPlan(call, event.calls[index] as CollectedCall, isRemoved),
  )
  const standstill = { ...state.standstill, replyFrom: state.callLog.length }
  return { ...state, phase: 'executing', calls, standstill }
}

function withPlan(before: Call, plan: CollectedCall, isRemoved: boolean): Call {
  const call = plan.input === undefined ? before : withInput(before, plan.input, isRemoved)
  const { effect, recovery, retry, serial, maxConcurrency, repeats, background, reason: askReason } = plan
  // A removal takes the digest too. Where the input is on record still, a decision about it stays bound to it.
  const isDerived = isRemoved && call.inputRemoved === undefined
  const inputDigest = isDerived ? computeDigest(call.input) : plan.inputDigest
  const { refusal, child, handoff, recorded, approvers, repairs } = plan
  const status = ({ run: 'ready', ask: 'to_ask', settle: 'to_settle' } as const)[plan.plan]
  return {
    ...call,
    status,
    inputDigest,
    ...omitUndefined({ effect, recovery, retry, serial, maxConcurrency, repeats, background, askReason }),
    ...omitUndefined({ refusal, child, handoff, recorded, approvers }),
    ...(repairs && { repaired: true }),
  }
}

/** Replaces the input of a call, as far as the record still has it. */
function withInput({ inputRemoved: _own, ...call }: Call, input: Call['input'], isRemoved: boolean): Call {
  return { ...call, input, ...(isRemoved && { inputRemoved: true as const }) }
}

/** Law 13: a decision is about the start and the arguments that were asked about, and no others. */
function requireAsked(
  state: RunState,
  event: EventOf<'approval_added'> | EventOf<'approval_decided'> | EventOf<'approval_applied'>,
  call: Call,
): void {
  requireAttempt(state, event, call.attempts + 1)
  if (state.removedFrom === undefined && event.inputDigest !== call.inputDigest)
    throw createIllegalTransition(state, event, 'it is about other arguments')
}

export function applyApprovalAdded(state: RunState, event: EventOf<'approval_added'>): RunState {
  return changeCall(state, event, ['awaiting_approval'], (call) => {
    requireAsked(state, event, call)
    const { by, roles, elsewhere } = event
    if (elsewhere) return call
    return { ...call, approvals: [...(call.approvals ?? []), { by, ...omitUndefined({ roles }) }] }
  })
}

export function applyApprovalApplied(state: RunState, event: EventOf<'approval_applied'>): RunState {
  return changeCall(state, event, ['to_ask'], (call) => {
    requireAsked(state, event, call)
    return { ...call, status: 'ready', approvedSeq: event.seq }
  })
}

export function applyApprovalDecided(state: RunState, event: EventOf<'approval_decided'>): RunState {
  const call = findCall(state, event.toolCallId)
  const next = changeCall(state, event, ['awaiting_approval'], (asked) => {
    requireAsked(state, event, asked)
    return event.approved ? approveCall(event, asked) : denyCall(event, asked)
  })
  return call === undefined ? next : withStanding(next, event, call)
}

function approveCall(event: EventOf<'approval_decided'>, before: Call): Call {
  const { input, note: changeNote, seq: approvedSeq } = event
  // An approval lets the call start; it does not shorten the wait after a failed attempt.
  const status = before.tries?.failed ? 'to_retry' : 'ready'
  const decided = { status, approvedSeq, ...omitUndefined({ changeNote }) } as const
  if (input === undefined) return { ...before, ...decided }
  // The recorded result belongs to the requested arguments; from here on the approved ones count.
  const { recorded: _asked, ...call } = withInput(before, input, event.removed !== undefined)
  return { ...call, ...decided, inputDigest: computeDigest(input) }
}

function denyCall({ by, reason }: EventOf<'approval_decided'>, call: Call): Call {
  const why = reason ? `: ${reason}` : '.'
  if (call.attempts === 0) {
    const text = `${by} denied this call${why}`
    return { ...call, status: 'to_settle', refusal: { outcome: 'denied', text } }
  }
  const before = call.tries?.failed
    ? 'The last attempt of this call failed'
    : 'Nobody knows whether this call took effect'
  const text = `${before}, and ${by} decided not to start it again${why}`
  return { ...call, status: 'to_settle', refusal: { outcome: 'interrupted', text } }
}

export function applyToolStarted(state: RunState, event: EventOf<'tool_started'>): RunState {
  const start = (call: Call): Call => {
    requireAttempt(state, event, call.attempts + 1)
    const { grant, attempt, at } = event
    // A call with a retry policy counts its attempts.
    const { since = at, failures = 0 } = call.tries ?? {}
    const tries = call.tries || call.retry ? { since, failures } : undefined
    return { ...call, ...omitUndefined({ grant, tries }), status: 'started', attempts: attempt }
  }
  const next = changeCall(state, event, ['ready', 'in_doubt', 'to_retry'], start)
  // A tool of unknown effect may change anything.
  const isRead = findCall(next, event.toolCallId)?.effect === 'read'
  const begun = isRead ? next : withStart(next)
  if (event.attempt > 1) return begun
  const { totals } = begun
  const before = getOwn(totals.toolCallsByTool, event.name) ?? 0
  const byTool = { ...totals.toolCallsByTool, [event.name]: before + 1 }
  return { ...begun, totals: { ...totals, toolCalls: totals.toolCalls + 1, toolCallsByTool: byTool } }
}

/** A call that may change something has started. Its own errors go on counting. */
function withStart(state: RunState): RunState {
  return { ...state, standstill: { ...state.standstill, from: state.callLog.length, served: 0 } }
}

export function applyResultsInjected(
  state: RunState,
  event: EventOf<'tool_results_injected'>,
): InjectingState {
  if (state.phase !== 'executing') throw createIllegalTransition(state, event)
  requireClosed(state, event)
  const results = state.calls.flatMap((call) => toShownResult(call) ?? [])
  if (event.toolCallIds.join() !== joinIds(results))
    throw createIllegalTransition(state, event, 'it is not in request order')
  const { calls, resultsChecked: _checked, ...rest } = withMessage(state, { role: 'tool', results })
  const asked = calls.find((call) => call.handoff && call.result?.outcome === 'success')
  const handoff = asked?.handoff && { ...asked.handoff, tool: asked.name }
  return { ...rest, phase: 'injecting', ...omitUndefined({ handoff }) }
}

/** Changes one call, if its status allows the event. */
function changeCall(
  state: RunState,
  event: RuntimeEvent & { readonly toolCallId: string },
  from: readonly CallStatus[],
  change: (call: Call) => Call,
): RunState {
  const { background = [] } = state
  const beside = background.findIndex(({ toolCallId }) => toolCallId === event.toolCallId)
  const calls = beside === -1 ? openTurnCalls(state) : background
  const place = beside === -1 ? findCallPlace(calls, event.toolCallId) : beside
  const call = calls[place]
  if (call === undefined)
    throw createIllegalTransition(state, event, `no open call ${event.toolCallId} in turn ${state.turn}`)
  if (!from.includes(call.status))
    throw createIllegalTransition(state, event, `call ${call.toolCallId} is ${call.status}`)
  if (beside !== -1) {
    const { turn, agent } = background[place] as BackgroundCall
    return { ...state, background: background.with(place, { ...change(call), turn, agent }) }
  }
  const changed = calls.with(place, change(call))
  if (state.phase === 'executing') return { ...state, calls: changed }
  // While a reply streams only a failed attempt's calls are settled: none of them may have run.
  if (state.phase !== 'streaming' || !state.attempt.failed) {
    throw createIllegalTransition(state, event, 'the reply is still streaming')
  }
  return { ...state, attempt: { ...state.attempt, calls: changed } }
}

/** Law 1: no turn continues while a tool request is without its result. */
export function requireClosed(state: RunState, event: RuntimeEvent): void {
  const open = openTurnCalls(state).find((call) => call.status !== 'settled')
  if (open) throw createIllegalTransition(state, event, `call ${open.toolCallId} has no result`)
  if (state.phase === 'collecting' && state.calls.length > 0)
    throw createIllegalTransition(state, event, 'calls are not collected')
}

function requireAttempt(
  state: RunState,
  event: RuntimeEvent & { readonly attempt: number },
  due: number,
): void {
  if (event.attempt !== due)
    throw createIllegalTransition(state, event, `attempt ${event.attempt} where ${due} is due`)
}

function joinIds(calls: readonly { readonly toolCallId: string }[]): string {
  return calls.map((call) => call.toolCallId).join()
}
