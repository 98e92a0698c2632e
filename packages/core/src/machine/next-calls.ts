import { addMs } from '../events/event-parts.ts'
import type { Fact, FactOf } from '../events/event.ts'
import {
  listAnsweredCalls,
  isResultsCheckDue,
  listGuardrails,
  requiresEffects,
  findStopReason,
} from './required-effects.ts'
import {
  isAtWork,
  parseEventReceipt,
  toCallKey,
  removedInput,
  removedInputInDoubt,
  toToolStarted,
  summarizeCalls,
  toTextContent,
} from './calls.ts'
import type { Call, CallStatus, CollectingState, ExecutingState, RunState } from './state.ts'
import { type Action, recordFacts, waitUntil } from './rules.ts'
import { computeDigest } from '../values/digest.ts'
import { listHeldWrites, isRerun, isStopping, describeForkReason, stubbed } from './retry.ts'
import { applyStanding } from './approvals.ts'
import { handOut } from './background.ts'
import { computeLeft, grantChild } from './budget.ts'
import {
  chooseCallsToStart,
  findCallsAwaitingEqual,
  nextForCallLimits,
  serveRepeats,
  toResultFact,
} from './call-limits.ts'
import {
  findTimeLimit,
  getApprovalExpiry,
  getDeadline,
  getGraceEnd,
  getWorkDeadline,
  meetLimit,
} from './limits.ts'

const outOfTime = 'the time of the run was up before it had answered'

/** Withholds an answer that a guardrail did not pass in time. Empty if no guardrail had to check it. */
export function withholdAnswer(state: CollectingState): readonly FactOf<'guardrail_tripped'>[] {
  const [guardrail] = listGuardrails(state, 'output')
  if (guardrail === undefined || state.reply.guarded) return []
  return [{ ...toWithheldFact(state.turn, guardrail), on: 'output' }]
}

/** Withholds the results of tools that a guardrail did not pass in time. */
function withholdResults(
  state: ExecutingState,
): readonly (FactOf<'guardrail_tripped'> | FactOf<'guardrails_checked'>)[] {
  const guardrails = listGuardrails(state, 'tool_output')
  const { turn } = state
  const withheld = { ...toWithheldFact(turn, guardrails[0] ?? ''), on: 'tool_output' as const }
  return [
    ...listAnsweredCalls(state).map(({ toolCallId }) => ({ ...withheld, toolCallId })),
    { type: 'guardrails_checked', turn, on: 'tool_output', guardrails },
  ]
}

function toWithheldFact(turn: number, guardrail: string): Omit<FactOf<'guardrail_tripped'>, 'on'> {
  const replacement = toTextContent('denied', `This was withheld: ${outOfTime}, the guardrail ${guardrail}.`)
  return { type: 'guardrail_tripped', turn, guardrail, action: 'replace', detail: outOfTime, replacement }
}

/** The next action while the calls of a turn are open: results first, then questions, then starts, then the injection. */
export function nextForCalls(state: ExecutingState, now: number): Action {
  return (
    recordFacts('settle_calls', state.cancel ? settleCancelled(state, state.cancel.at, now) : []) ??
    recordFacts('settle_calls', [
      ...handOut(state),
      ...settleRefused(state),
      ...settleRemovedInputs(state),
      ...settleOverdue(state, now),
    ]) ??
    (state.cancel ? undefined : nextUnlessCancelled(state, now)) ??
    nextOnceSettled(state, now) ??
    waitOrSuspend(state, now)
  )
}

/** The next action for the calls of a run that is not cancelled. */
function nextUnlessCancelled(state: ExecutingState, now: number): Action | undefined {
  // A denial begins nothing.
  if (holdsStarts(state)) return denyExpired(state, now)
  if (!awaitsStart(state)) return nextAtDeadline(state, now)
  return (
    nextAtDeadline(state, now) ??
    recordFacts('settle_calls', giveUpRetries(state)) ??
    nextForCallLimits(state) ??
    recordFacts('settle_calls', serveRepeats(state)) ??
    recordFacts('settle_calls', stubWrites(state)) ??
    denyExpired(state, now) ??
    recordFacts('run_tools', applyStanding(state, now)) ??
    askApprovals(state, now) ??
    recordFacts('run_tools', startCalls(state, now))
  )
}

/** Returns whether a call may still be started, now or after a question. */
function awaitsStart({ calls }: ExecutingState): boolean {
  const { ready, to_retry, to_ask, awaiting_approval, in_doubt } = summarizeCalls(calls).counts
  return ready + to_retry + to_ask + awaiting_approval + in_doubt > 0
}

/** Calls that never were to run get the result that was decided when they were collected, or denied. */
function settleRefused(state: ExecutingState): readonly Fact[] {
  return listCallsWithStatus(state, 'to_settle').map((call) =>
    toResultFact(state, call, call.refusal?.outcome ?? 'skipped', call.refusal?.text),
  )
}

/**
 * Law 13: calls whose input was removed from the record do not start, nor does a person decide about them. The child run of
 * one in doubt is told to stop, so that what it used is counted.
 */
function settleRemovedInputs(state: ExecutingState): readonly Fact[] {
  if (state.removedFrom === undefined) return []
  return state.calls.flatMap((call) => {
    const { inputRemoved, status, attempts } = call
    const isDecided = status === 'settled' || status === 'to_settle' || status === 'deferred'
    if (inputRemoved === undefined || isDecided || isAtWork(call)) return []
    const failed = giveUpRetry(state, call, 'its input was removed from the record')
    if (failed) return [failed]
    return attempts > 0
      ? [toResultFact(state, call, 'interrupted', removedInputInDoubt)]
      : [toResultFact(state, call, removedInput.outcome, removedInput.text)]
  })
}

/** Calls that were to be settled later, and were not in their time. */
function settleOverdue(state: ExecutingState, now: number): readonly Fact[] {
  const late = listCallsWithStatus(state, 'deferred').filter(
    ({ deferred }) => now >= (deferred?.deadlineAt ?? Infinity),
  )
  return late.map((call) => {
    const event = parseEventReceipt(call.deferred?.externalId ?? '')
    const text =
      event === undefined
        ? 'Nobody settled this call in its time. It may have had an effect all the same.'
        : `The event ${event} did not come in its time.`
    return toResultFact(state, call, 'timed_out', text)
  })
}

/**
 * After a cancel nothing starts, calls that have not started end at once, and running calls have the grace time to
 * end.
 */
function settleCancelled(state: ExecutingState, cancelledAt: number, now: number): readonly Fact[] {
  const late = now >= getGraceEnd(state, cancelledAt)
  return state.calls.flatMap((call) => {
    if (call.status === 'settled') return []
    if (isAtWork(call) && (!late || awaitsChildReport(state, call, cancelledAt, now))) return []
    const failed = giveUpRetry(state, call, 'the run was cancelled')
    if (failed) return [failed]
    const doubtful = call.attempts > 0 && call.status !== 'started'
    return [toResultFact(state, call, doubtful ? 'interrupted' : 'cancelled')]
  })
}

/** Calls that wait for another attempt, and get none since a limit was met. */
function giveUpRetries(state: ExecutingState): readonly Fact[] {
  if (!isStopping(state)) return []
  const why = `the limit ${state.metLimit?.limit} of the run was met`
  return listCallsWithStatus(state, 'to_retry').flatMap((call) => giveUpRetry(state, call, why) ?? [])
}

/** The result of a call that will get no further attempt: that of its last one, with the reason. */
function giveUpRetry(state: ExecutingState, call: Call, why: string): FactOf<'tool_result'> | undefined {
  const { failed } = call.tries ?? {}
  if (failed === undefined || call.status !== 'to_retry') return undefined
  const content = [...failed.content, ...toTextContent(failed.outcome, `It was not tried again: ${why}.`)]
  return { ...toResultFact(state, call, failed.outcome), content }
}

/** When the run's time is up, running calls are asked to stop, within the grace time. */
function nextAtDeadline(state: ExecutingState, now: number): Action | undefined {
  if (state.reply.finalizing) return undefined
  const { metLimit } = state
  if (metLimit === undefined) {
    return now < getWorkDeadline(state) ? undefined : meetLimit(state, findTimeLimit(state, now))
  }
  if (metLimit.limit !== 'maxDurationMs' || now < getGraceEnd(state, metLimit.at)) return undefined
  const text = 'The time of the run is up, and the tool did not stop. It may have had an effect all the same.'
  return recordFacts(
    'settle_calls',
    listCallsWithStatus(state, 'started')
      .filter((call) => !awaitsChildReport(state, call, metLimit.at, now))
      .map((call) => toResultFact(state, call, 'timed_out', text)),
  )
}

/** How long a child run's totals are waited for after the grace time, in milliseconds: they are read from the ledger. */
const REPORT_MS = 30_000

/** The shell ends the call of a child run itself, when the grace time is over, with what the child has used. */
function awaitsChildReport(state: ExecutingState, { grant }: Call, askedAt: number, now: number): boolean {
  return grant !== undefined && now < getGraceEnd(state, askedAt) + REPORT_MS
}

/** Does not perform writes of a fork that no recorded result answers and that no person is asked about. */
function stubWrites(state: ExecutingState): readonly Fact[] {
  return listHeldWrites(state, 'stub').map((call) =>
    toResultFact(state, call, call.status === 'ready' ? 'skipped' : 'interrupted', stubbed.text),
  )
}

/** An approval without a decision in time counts as denied. */
function denyExpired(state: ExecutingState, now: number): Action | undefined {
  const late = listCallsWithStatus(state, 'awaiting_approval').filter(
    ({ expiresAt = Infinity }) => now >= expiresAt,
  )
  if (late.length === 0) return undefined
  const facts = late.map(({ toolCallId, attempts, inputDigest = '' }): FactOf<'approval_decided'> => ({
    type: 'approval_decided',
    turn: state.turn,
    toolCallId,
    attempt: attempts + 1,
    inputDigest,
    approved: false,
    by: 'expiry',
    reason: 'nobody decided in time',
  }))
  return { kind: 'ask_approval', facts }
}

function askApprovals(state: ExecutingState, now: number): Action | undefined {
  const again = listCallsWithStatus(state, 'in_doubt').filter((call) => call.recovery === 'ask')
  const held = listHeldWrites(state, 'ask')
  const askedElsewhere = listCallsWithStatus(state, 'awaiting_approval').filter((call) => call.askedElsewhere)
  const waiting = findCallsAwaitingEqual(state)
  const calls = [...listCallsWithStatus(state, 'to_ask'), ...held]
    .filter((call) => !waiting.has(call))
    .concat(again, askedElsewhere)
  if (calls.length === 0) return undefined
  const expiresAt = getApprovalExpiry(state.limits, now)
  const facts = calls.map((call): FactOf<'approval_requested'> => {
    const reason =
      call.status === 'in_doubt'
        ? 'It was started before, and nobody knows whether it took effect. Approve to start it again.'
        : held.includes(call)
          ? describeForkReason(call.askReason)
          : call.askReason
    return {
      type: 'approval_requested',
      turn: state.turn,
      toolCallId: call.toolCallId,
      name: call.name,
      attempt: call.attempts + 1,
      inputDigest: call.inputDigest ?? computeDigest(call.input),
      ...(reason !== undefined && { reason }),
      ...(call.approvers && { approvers: call.approvers }),
      ...(expiresAt !== undefined && { expiresAt }),
    }
  })
  return { kind: 'ask_approval', facts }
}

function startCalls(state: ExecutingState, now: number): readonly Fact[] {
  // A call in doubt is not started again unless its tool declared a recovery.
  const doubtful = listCallsWithStatus(state, 'in_doubt').filter(
    ({ recovery = 'report' }) => recovery === 'report',
  )
  if (doubtful.length > 0) return doubtful.map((call) => toResultFact(state, call, 'interrupted'))
  const waiting = findCallsAwaitingEqual(state)
  const chosen = chooseCallsToStart(state, (call) => {
    if (call.status === 'ready') return !waiting.has(call) && now >= getEarliestStart(state, call)
    return isRerun(call) || (call.status === 'to_retry' && now >= (call.tries?.failed?.retryAt ?? 0))
  })
  if (chosen.length === 0) return []
  const allowed = computeLeft(state).toolCalls
  const facts: Fact[] = []
  let fresh = 0
  for (const call of chosen) {
    if (call.attempts === 0 && ++fresh > allowed) continue
    facts.push(startOrRefuse(state, call, now))
  }
  return facts
}

/** When a call may start: a poll some time after the last answer to it, and not beside an equal one. */
function getEarliestStart({ calls, polls }: ExecutingState, call: Call): number {
  const key = typeof call.repeats === 'object' ? toCallKey(call) : undefined
  if (typeof call.repeats !== 'object' || key === undefined) return 0
  const before = calls.slice(0, calls.indexOf(call))
  if (before.some((other) => other.status !== 'settled' && toCallKey(other) === key)) return Infinity
  const answeredAt = polls?.[key]
  return answeredAt === undefined ? 0 : addMs(answeredAt, call.repeats.minIntervalMs)
}

/** The start of a call. Law 9 for child runs: one that nothing is left for does not start, and gets a result. */
export function startOrRefuse(
  state: ExecutingState,
  call: Call,
  now: number,
): FactOf<'tool_started'> | FactOf<'tool_result'> {
  const here = { turn: state.turn, toolCallId: call.toolCallId }
  if (call.child === undefined || call.grant !== undefined) return toToolStarted(state.runId, call, here)
  const grant = grantChild(state, now)
  if (!('limit' in grant)) return toToolStarted(state.runId, { ...call, grant }, here)
  const text = `The limit ${grant.limit} of this run leaves too little for ${call.child}. Nothing was run.`
  return toResultFact(state, call, 'limit_reached', text)
}

/** Law 3: all results enter together, in request order, once guardrails have checked them. */
function nextOnceSettled(state: ExecutingState, now: number): Action | undefined {
  const { turn, calls, metLimit } = state
  if (isResultsCheckDue(state)) {
    // Guardrails may take the time that the run has left; results that have not passed by then are withheld.
    const deadline = metLimit?.policy === 'ask' ? Infinity : getDeadline(state)
    return waitUntil(deadline, now) ?? { kind: 'settle_calls', facts: withholdResults(state) }
  }
  if (summarizeCalls(calls).counts.settled < calls.length) return undefined
  const toolCallIds = calls.map((call) => call.toolCallId)
  return { kind: 'inject', facts: [{ type: 'tool_results_injected', turn, toolCallIds }] }
}

/** Nothing to record: something runs, or only a person can continue the run. */
function waitOrSuspend(state: ExecutingState, now: number): Action {
  const retryAt = nextRetry(state, now)
  if (retryAt === Infinity && !requiresEffects(state)) return { kind: 'suspend' }
  const stopAt = nextGraceEnd(state, now) ?? (state.metLimit ? Infinity : getWorkDeadline(state))
  const wakeAt = Math.min(retryAt, state.reply.finalizing ? Infinity : stopAt)
  return wakeAt === Infinity ? { kind: 'wait' } : { kind: 'wait', wakeAt }
}

/**
 * When the next call is tried or polled again; `Infinity` if none waits for that, or a limit is asked about first. A call
 * whose time has come waits for another call to end, not for a time.
 */
function nextRetry(state: ExecutingState, now: number): number {
  if (holdsStarts(state)) return Infinity
  const times = listCallsWithStatus(state, 'to_retry').map(({ tries }) => tries?.failed?.retryAt ?? 0)
  const polls = listCallsWithStatus(state, 'ready').map((call) => getEarliestStart(state, call))
  return Math.min(...[...times, ...polls].filter((at) => at > now), Infinity)
}

/** Returns whether a limit that a person is asked about keeps everything from starting that it could forbid. */
function holdsStarts({ metLimit }: ExecutingState): boolean {
  return metLimit?.policy === 'ask' && metLimit.limit !== 'maxToolCalls'
}

/** When the run stops waiting for tools that were asked to stop, and later for totals of child runs; `undefined` if no tool was. */
function nextGraceEnd(state: ExecutingState, now: number): number | undefined {
  const { cancel, metLimit } = state
  const askedAt = cancel?.at ?? (findStopReason(state) === undefined ? undefined : metLimit?.at)
  if (askedAt === undefined) return undefined
  const end = getGraceEnd(state, askedAt)
  return now < end ? end : end + REPORT_MS
}

function listCallsWithStatus(state: ExecutingState, status: CallStatus): readonly Call[] {
  if (summarizeCalls(state.calls).counts[status] === 0) return []
  return state.calls.filter((call) => call.status === status)
}

/** Closes calls that will not run: as results where they are open, collected first where they are not yet. */
export function settleCalls(
  state: RunState,
  calls: readonly Call[],
  outcome: 'skipped' | 'cancelled' | 'limit_reached' | 'denied',
): readonly Fact[] {
  const open = calls.filter((call) => call.status !== 'settled')
  if (state.phase !== 'collecting') return open.map((call) => toResultFact(state, call, outcome))
  const text = toTextContent(outcome)[0]?.text ?? ''
  const collected = open.map(({ toolCallId, name, input }) => ({
    toolCallId,
    name,
    plan: 'settle' as const,
    inputDigest: computeDigest(input),
    refusal: { outcome, text },
  }))
  return [{ type: 'tool_requests_collected', turn: state.turn, calls: collected }]
}
