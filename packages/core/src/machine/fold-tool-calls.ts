import type { Outcome, ToolResult } from '../events/content.ts'
import { getOwn, omitUndefined } from '../values/json.ts'
import type { CollectedCall, EventOf, RuntimeEvent } from '../events/event.ts'
import { answerDigest, endsInNews, logCall } from './history.ts'
import { toShownResult } from './request.ts'
import { digestOf } from '../values/digest.ts'
import { isHeldWrite } from './retry.ts'
import { illegalTransition } from './transition-table.ts'
import {
  type Call,
  type CallStatus,
  type ExecutingState,
  type InjectingState,
  type RunState,
  withChildTotals,
  withToolSpending,
  withMessage,
} from './state.ts'
import { findCall, toCallKey, openTurnCalls, findCallPlace, withCall } from './calls.ts'

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
  const settled = changeCall(state, event, endable[outcome], (call) => {
    if (name !== call.name) throw illegalTransition(state, event, `the call's tool is ${call.name}`)
    if (call.status === 'deferred' && outcome === 'cancelled' && call.child === undefined) {
      throw illegalTransition(state, event, `call ${call.toolCallId} is deferred`)
    }
    return { ...call, status: 'settled', result: toResultForModel(event) }
  })
  // A child run's usage counts as the run's own.
  const charged = child ? { ...settled, totals: withChildTotals(settled.totals, child) } : settled
  const next = withReuse(charged, event)
  return { ...next, takeOvers: 0, ...findAnswer(next, event) }
}

/** Law 10: only a call whose tool declares retries is tried again after a failure. */
export function applyAttemptFailed(state: RunState, event: EventOf<'tool_attempt_failed'>): RunState {
  return changeCall(state, event, ['started'], (call) => {
    requireAttempt(state, event, call.attempts)
    const { retry, tries } = call
    if (retry === undefined || tries === undefined)
      throw illegalTransition(state, event, 'its tool declares no retries')
    if (tries.failures + 1 >= retry.maxAttempts) {
      throw illegalTransition(state, event, `its tool allows ${retry.maxAttempts} attempts`)
    }
    const { outcome, content, retryAt } = event
    const failed = { outcome, content, retryAt }
    return { ...call, status: 'to_retry', tries: { ...tries, failures: tries.failures + 1, failed } }
  })
}

export function applyApprovalRequested(state: RunState, event: EventOf<'approval_requested'>): RunState {
  const askable = ['to_ask', 'in_doubt', 'ready', 'to_retry', 'awaiting_approval'] as const
  return changeCall(state, event, askable, ({ askedElsewhere, expiresAt: _past, ...call }) => {
    requireAttempt(state, event, call.attempts + 1)
    if (call.status === 'awaiting_approval' && askedElsewhere === undefined) {
      throw illegalTransition(state, event, 'it is asked about already')
    }
    const mayRun = call.status === 'ready' || call.status === 'to_retry'
    if (mayRun && !isHeldWrite(state, call)) throw illegalTransition(state, event, 'it may run')
    const { expiresAt, reason: askReason } = event
    const isShared = state.parent?.relation === 'fork' && event.seq <= state.parent.seq
    return {
      ...call,
      status: 'awaiting_approval',
      // The time to decide was that of the other run.
      ...(expiresAt !== undefined && (isShared ? { askedElsewhere: true } : { expiresAt })),
      ...omitUndefined({ askReason }),
    }
  })
}

/** A tool's own ending in a fork was served from the record, or the fork goes its own way from here. */
function withReuse(state: RunState, event: EventOf<'tool_result'>): RunState {
  const { parent, fork = { reused: [], own: [] } } = state
  const { reused, durationMs, outcome, seq } = event
  if (parent?.relation !== 'fork' || seq <= parent.seq) return state
  if (reused !== undefined) return { ...state, fork: { ...fork, reused: [...fork.reused, reused] } }
  if (durationMs === undefined && outcome !== 'success' && outcome !== 'failed') return state
  const call = findCall(state, event.toolCallId)
  const own = call ? [...fork.own, { name: call.name, inputDigest: digestOf(call.input) }] : fork.own
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
      : withError(errorStreaks, name, answerDigest(outcome, content))
  if (call.effect !== 'read') {
    // Its effect may have come after its start, while reads of the turn were answered. What failed again and again did not help.
    const { standstill: begun } = withStart(state)
    const changed = { ...polled, standstill: begun }
    if (outcome === 'success') return { ...changed, errorStreaks: {} }
    return { ...changed, errorStreaks: call.repeats === undefined ? errors : errorStreaks }
  }
  if (!isAnswer) return {}
  const { inputDigest = digestOf(call.input) } = call
  const result = toShownResult(call) ?? toResultForModel(event)
  // Of a result that is shown in another form, the log keeps that form and the digest of the whole.
  const resultDigest = result.content === content ? undefined : answerDigest(outcome, content)
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
  if (state.phase !== 'collecting') throw illegalTransition(state, event)
  if (joinIds(event.calls) !== joinIds(state.calls) || state.calls.length === 0) {
    throw illegalTransition(state, event, 'it does not name every call of the message, in order')
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
  const { effect, recovery, retry, serial, maxConcurrency, repeats, inputDigest, reason: askReason } = plan
  const { refusal, child, handoff, recorded } = plan
  const status = ({ run: 'ready', ask: 'to_ask', settle: 'to_settle' } as const)[plan.plan]
  return {
    ...call,
    status,
    inputDigest,
    ...omitUndefined({ effect, recovery, retry, serial, maxConcurrency, repeats, askReason }),
    ...omitUndefined({ refusal, child, handoff, recorded }),
  }
}

/** A call with another input in the place of its own, as far as the record still has that. */
function withInput({ inputRemoved: _own, ...call }: Call, input: Call['input'], isRemoved: boolean): Call {
  return { ...call, input, ...(isRemoved && { inputRemoved: true as const }) }
}

export function applyApprovalDecided(state: RunState, event: EventOf<'approval_decided'>): RunState {
  return changeCall(state, event, ['awaiting_approval'], (call) => {
    requireAttempt(state, event, call.attempts + 1)
    // Law 13: a decision is about the arguments that were asked about, and no others.
    if (state.removedFrom === undefined && event.inputDigest !== call.inputDigest) {
      throw illegalTransition(state, event, 'it is about other arguments')
    }
    return event.approved ? approveCall(event, call) : denyCall(event, call)
  })
}

function approveCall(event: EventOf<'approval_decided'>, before: Call): Call {
  const { input, note: changeNote, seq: approvedSeq } = event
  // An approval lets the call start; it does not shorten the wait after a failed attempt.
  const status = before.tries?.failed ? 'to_retry' : 'ready'
  const decided = { status, approvedSeq, ...omitUndefined({ changeNote }) } as const
  if (input === undefined) return { ...before, ...decided }
  // What is on record answers the arguments that were asked for. Asked about from here on is what was approved.
  const { recorded: _asked, ...call } = withInput(before, input, event.removed !== undefined)
  return { ...call, ...decided, inputDigest: digestOf(input) }
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
  const next = changeCall(state, event, ['ready', 'in_doubt', 'to_retry'], (call) => {
    requireAttempt(state, event, call.attempts + 1)
    const { grant, attempt, at } = event
    // A call with a retry policy counts its attempts.
    const { since = at, failures = 0 } = call.tries ?? {}
    const tries = call.tries || call.retry ? { since, failures } : undefined
    return { ...call, ...omitUndefined({ grant, tries }), status: 'started', attempts: attempt }
  })
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
  if (state.phase !== 'executing') throw illegalTransition(state, event)
  requireClosed(state, event)
  const results = state.calls.flatMap((call) => toShownResult(call) ?? [])
  if (event.toolCallIds.join() !== joinIds(results))
    throw illegalTransition(state, event, 'it is not in request order')
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
  const calls = openTurnCalls(state)
  const place = findCallPlace(calls, event.toolCallId)
  const call = calls[place]
  if (call === undefined)
    throw illegalTransition(state, event, `no open call ${event.toolCallId} in turn ${state.turn}`)
  if (!from.includes(call.status))
    throw illegalTransition(state, event, `call ${call.toolCallId} is ${call.status}`)
  const changed = withCall(calls, place, change(call))
  if (state.phase === 'executing') return { ...state, calls: changed }
  // While a reply streams only a failed attempt's calls are settled: none of them may have run.
  if (state.phase !== 'streaming' || !state.attempt.failed) {
    throw illegalTransition(state, event, 'the reply is still streaming')
  }
  return { ...state, attempt: { ...state.attempt, calls: changed } }
}

/** Law 1: no turn continues while a tool request is without its result. */
export function requireClosed(state: RunState, event: RuntimeEvent): void {
  const open = openTurnCalls(state).find((call) => call.status !== 'settled')
  if (open) throw illegalTransition(state, event, `call ${open.toolCallId} has no result`)
  if (state.phase === 'collecting' && state.calls.length > 0)
    throw illegalTransition(state, event, 'calls are not collected')
}

function requireAttempt(
  state: RunState,
  event: RuntimeEvent & { readonly attempt: number },
  due: number,
): void {
  if (event.attempt !== due)
    throw illegalTransition(state, event, `attempt ${event.attempt} where ${due} is due`)
}

function joinIds(calls: readonly { readonly toolCallId: string }[]): string {
  return calls.map((call) => call.toolCallId).join()
}
