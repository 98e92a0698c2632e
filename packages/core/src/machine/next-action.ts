import { endBesideBackground, nextForBackground } from './background.ts'
import { applyGivenModel } from '../events/agent-definition.ts'
import { type Message, type ModelRef, type Outcome, isSameModel, type StopReason } from '../events/content.ts'
import type { Fact, FactOf, FinishReason, HistoryEdit, ShownChange } from '../events/event.ts'
import { type LimitName, limitReasons } from '../events/limits.ts'
import type { ToolChoice } from '../events/model-request.ts'
import { ConfigurationError, type FailureClass } from '../values/errors.ts'
import { omitUndefined } from '../values/json.ts'
import { requireAnswer, trueOrFalse } from '../values/option.ts'
import { getCurrentModel, getMaxWebSearches, getPrice, summarizeCalls } from './calls.ts'
import {
  compactAfterOverflow,
  compactBeforeCall,
  nextWhileCompacting,
  waitBeforeCompaction,
} from './compaction.ts'
import { readMessages, readShownMessages, requireShown, showsOtherWords } from './history.ts'
import { grantModelCall, settleUsage } from './budget.ts'
import {
  findTimeLimit,
  getDeadline,
  getOnLimit,
  getWorkDeadline,
  type LimitFinding,
  meetLimit,
} from './limits.ts'
import { nextForCalls, settleCalls, withholdAnswer } from './next-calls.ts'
import { toDraftedReply } from './reply.ts'
import {
  digestAdditions,
  getSettings,
  listModels,
  namesModel,
  type OfferedCall,
  prepareCall,
  computeRequestDigest,
} from './request.ts'
import { findDueAnswerCheck, findDueInputChecks, requiresEffects } from './required-effects.ts'
import { MAX_TAKE_OVERS } from './retry.ts'
import { type Action, type Rules, waitUntil } from './rules.ts'
import { nextForSchedule } from './schedule.ts'
import type {
  CollectingState,
  FailedAttempt,
  InjectingState,
  MetLimit,
  Reply,
  RunState,
  ScheduleState,
  StreamingState,
} from './state.ts'
import { estimateChangeTokens, estimateRequestTokens, filterOfferedTools, isSameSource } from './tokens.ts'

/**
 * THE LOOP CONTROLLER: the one place that decides whether a run continues, waits or stops. Pure: state and time in, what
 * the next action out. It starts nothing; what must be in flight follows from the state (`requiredEffects`).
 */
export function nextAction(state: RunState, now: number, rules: Rules = {}): Action {
  // No time has passed that a suspended run could have used.
  if (now <= state.at || !isSuspended(state)) return awaitPending(state, now, rules)
  // A suspended run does not use up its time.
  return awaitPending({ ...state, waitedMs: state.waitedMs + now - state.at }, now, rules)
}

/**
 * Returns whether nothing is in flight, nothing is pending, and only a command can continue the run: the controller's own
 * answer at the time of the last event. Results, lists and a resume ask nothing else.
 */
export function isSuspended(state: RunState): boolean {
  return mayBeSuspended(state) && awaitPending(state, state.at, {}).kind === 'suspend'
}

/**
 * Finds the earliest time at which a run has something to do by itself, in milliseconds since 1970 UTC: the time of its last event
 * where it waits for nothing. `undefined` if it is done, or only a command can continue it.
 */
export function findWakeTime(state: RunState): number | undefined {
  if (state.phase === 'done') return undefined
  if (isSuspended(state)) return findEndOfSuspension(state)
  // Between turns, the controller would ask the agent's rules.
  const isHeld =
    state.phase === 'executing' ||
    state.schedule !== undefined ||
    (state.phase === 'streaming' && state.attempt.failed)
  const action = isHeld && !requiresEffects(state) ? awaitPending(state, state.at, {}) : undefined
  return (action?.kind === 'wait' ? action.wakeAt : undefined) ?? state.at
}

/** Finds the first millisecond at which the controller has an action for a suspended run, which it then always has. */
function findEndOfSuspension(state: RunState): number | undefined {
  const isOver = (now: number): boolean => nextAction(state, now).kind !== 'suspend'
  let [before, after] = [state.at, Number.MAX_SAFE_INTEGER]
  if (!isOver(after)) return undefined
  while (after - before > 1) {
    const middle = Math.floor(before + (after - before) / 2)
    if (isOver(middle)) after = middle
    else before = middle
  }
  return after
}

/** Spares most states the controller's answer, and those in which it asks an agent's rules, which a reader lacks. */
function mayBeSuspended(state: RunState): boolean {
  const isHeld =
    state.phase === 'executing'
      ? // What has all its results enters the history, or is checked first.
        summarizeCalls(state.calls).counts.settled < state.calls.length
      : state.metLimit?.policy === 'ask' || state.history.length === 0 || state.schedule !== undefined
  const hasPendingHandoff = state.phase === 'injecting' && state.handoff !== undefined
  return isHeld && !hasPendingHandoff && !requiresEffects(state)
}

/** While something is in flight, nothing is suspended: its report has to be handled. */
function awaitPending(state: RunState, now: number, rules: Rules): Action {
  const next = (state.background && nextForBackground(state)) ?? nextInPhase(state, now, rules)
  const action = next.kind === 'finish' ? endBesideBackground(state, next, now) : next
  return action.kind === 'suspend' && requiresEffects(state) ? { kind: 'wait' } : action
}

function nextInPhase(state: RunState, now: number, rules: Rules): Action {
  switch (state.phase) {
    case 'idle':
      if (state.schedule) return nextOfSchedule(state, state.schedule, now)
      if (state.sessionEdit) return finishRun(state, 'stopped', 'It is an edit of its session.')
      if (state.history.length === 0) return endIfStopped(state) ?? { kind: 'suspend' }
      return endIfStopped(state) ?? nextTurn(state, undefined, now, rules)
    case 'streaming':
      return state.attempt.failed
        ? nextAfterFailure(state, state.attempt.failed, now, rules)
        : nextWhileStreaming(state, now)
    case 'collecting':
      return state.calls.length === 0 ? nextAfterReply(state, now, rules) : nextWhileCollecting(state, now)
    case 'executing':
      return nextForCalls(state, now)
    case 'injecting':
      return nextAfterReply(state, now, rules)
    case 'done':
      return { kind: 'finished' }
  }
}

function nextOfSchedule(state: RunState, schedule: ScheduleState, now: number): Action {
  const next = endIfStopped(state) ?? nextForSchedule(state, schedule, now)
  return next === 'over' ? finishRun(state, 'stopped', 'Its last time has come.') : next
}

function nextWhileStreaming(state: StreamingState, now: number): Action {
  if (state.cancel || state.blocked) return keepPartial(state, 'cancelled')
  const wait = waitUntil(state.attempt.finalizing ? getDeadline(state) : getWorkDeadline(state), now)
  if (wait) return wait
  return state.metLimit ? keepPartial(state, 'cancelled') : meetLimit(state, findTimeLimit(state, now))
}

/** A failed attempt: the next one when its time has come, or another model, or what came of the reply is kept. */
function nextAfterFailure(state: StreamingState, failed: FailedAttempt, now: number, rules: Rules): Action {
  const { finalizing } = state.attempt
  if (state.cancel || state.blocked || (state.metLimit && !finalizing)) return keepPartial(state, 'cancelled')
  return nextWhileCompacting(state, now) ?? nextAttempt(state, failed, now, rules)
}

function nextAttempt(state: StreamingState, failed: FailedAttempt, now: number, rules: Rules): Action {
  const { calls } = state.attempt
  const isGivenUp = state.takeOvers > MAX_TAKE_OVERS
  const retryAt = isGivenUp ? undefined : failed.shortened ? state.at : failed.retryAt
  const deadline = isFinalizing(state) ? getDeadline(state) : getWorkDeadline(state)
  const wait = retryAt === undefined ? undefined : waitUntil(Math.min(retryAt, deadline), now)
  if (wait) return wait
  const shorter = compactAfterOverflow(state, now, failed, rules)
  if (shorter) {
    const facts = [...settleCalls(state, calls, 'skipped'), shorter]
    return waitBeforeCompaction(state) ?? { kind: 'compact', facts }
  }
  const model = retryAt === undefined ? findModelAfterGivingUp(state) : state.attempt.model
  if (model === undefined) return keepPartial(state, 'failed')
  const next = failed.shortened
    ? startShorterCall(state, now, model, rules)
    : repeatModelCall(state, now, model)
  if (next === 'pending') {
    return waitUntil(deadline, now) ?? meetInAttempt(state, findTimeLimit(state, now))
  }
  if ('limit' in next) return meetInAttempt(state, next)
  // Two attempts are never spliced: what the failed one asked for is closed before the next one starts.
  return { kind: 'call_model', facts: [...settleCalls(state, calls, 'skipped'), next] }
}

/** Returns whether the attempt is the call that writes the answer at a limit. */
function isFinalizing({ attempt, metLimit }: StreamingState): boolean {
  return attempt.finalizing && metLimit !== undefined
}

/** A limit that no further attempt fits in: the finalizing call ends there, any other one leads to it. */
function meetInAttempt(state: StreamingState, finding: LimitFinding): Action {
  return isFinalizing(state) ? keepPartial(state, 'cancelled') : meetLimit(state, finding)
}

/** The same call with the history that was made shorter, which the agent's code gets to see as it sees each turn. */
function startShorterCall(
  state: StreamingState,
  now: number,
  model: ModelRef,
  rules: Rules,
): ReturnType<typeof repeatModelCall> | 'pending' {
  const plan = repeatPlan(state, model)
  const prepared = prepareCall(state, rules, toOfferedCall(state, plan))
  return prepared === 'pending' ? prepared : nextModelCall(state, now, { ...plan, ...prepared })
}

/** The received part of a reply that was cut off enters the history, marked as partial; its calls do not run. */
function keepPartial(state: StreamingState, stopReason: StopReason & ('cancelled' | 'failed')): Action {
  const { attempt, metLimit } = state
  const nothingCame = attempt.drafts.length === 0 && attempt.calls.length === 0
  // Calls that have their results belong to an attempt that was given up for the next one.
  if (attempt.calls.some((call) => call.status === 'settled')) return endWithoutReply(state)
  if (nothingCame && !metLimit) return endWithoutReply(state)
  return {
    kind: 'keep_partial',
    facts: [
      ...(attempt.failed ? [] : settleUsage(state, 'cancelled')),
      {
        type: 'assistant_message_finished',
        turn: state.turn,
        attempt: attempt.number,
        stopReason,
        partial: true,
        ...toDraftedReply(attempt),
        ...(attempt.providerMessageId !== undefined && { providerMessageId: attempt.providerMessageId }),
      },
    ],
  }
}

/** Ends the run without a message of this attempt; what the attempt has left open is closed first. */
function endWithoutReply(state: StreamingState): Action {
  const { attempt, metLimit } = state
  const { failure } = attempt.failed ?? {}
  const reason = metLimit ? limitReasons[metLimit.limit] : toFailureReason(failure?.class)
  const end = endIfStopped(state) ?? finishRun(state, reason, failure?.message)
  return { kind: 'finish', facts: [...settleCalls(state, attempt.calls, 'skipped'), ...end.facts] }
}

/** Stop reasons after which a reply's calls may run. Any other says that the reply is not what the model meant. */
const runnable: ReadonlySet<StopReason> = new Set(['tool_use', 'end', 'paused', 'other'])

function nextWhileCollecting(state: CollectingState, now: number): Action {
  const { calls, reply, cancel, blocked, metLimit } = state
  const settle = (outcome: Parameters<typeof settleCalls>[2]): Action => ({
    kind: 'collect',
    facts: settleCalls(state, calls, outcome),
  })
  if (cancel) return settle('cancelled')
  if (blocked) return settle('denied')
  if (reply.finalizing) return settle('limit_reached')
  if (reply.message.partial || !runnable.has(reply.message.stopReason)) return settle('skipped')
  const wait = waitUntil(metLimit?.policy === 'ask' ? Infinity : getWorkDeadline(state), now)
  return wait ?? (metLimit ? settle('limit_reached') : meetLimit(state, findTimeLimit(state, now)))
}

/** The turn is over: every call has its result in the history. */
function nextAfterReply(state: CollectingState | InjectingState, now: number, rules: Rules): Action {
  const next = endIfStopped(state) ?? nextBeforeResults(state, now, rules) ?? nextFromReply(state, now, rules)
  return withoutRefused(state, next)
}

/** Returns the action that a reply needs before its other results: its handoff, or its pending guardrail checks. */
function nextBeforeResults(
  state: CollectingState | InjectingState,
  now: number,
  rules: Rules,
): Action | undefined {
  if (state.phase === 'injecting') return state.handoff && nextHandoff(state, state.handoff, rules)
  // Newer input is checked in parallel with the next model call.
  const beside = state.inputCheck !== undefined && !state.inputSinceReply && !state.reply.message.partial
  return beside || findDueAnswerCheck(state) ? waitForCheck(state, now) : undefined
}

/** A check may take the time that the run has left; an answer that has not passed its guardrails by then is withheld. */
function waitForCheck(state: CollectingState, now: number): Action {
  const wait = waitUntil(state.metLimit?.policy === 'ask' ? Infinity : getDeadline(state), now)
  if (wait) return wait
  if (state.metLimit === undefined) return meetLimit(state, findTimeLimit(state, now))
  const { facts } = finishRun(state, limitReasons[state.metLimit.limit])
  return { kind: 'finish', facts: [...withholdAnswer(state), ...facts] }
}

function nextFromReply(state: CollectingState | InjectingState, now: number, rules: Rules): Action {
  const continueRun = (): Action => nextTurn(state, state.reply, now, rules)
  const end = endAtLimit(state)
  if (end) return end === 'continue' ? continueRun() : finishRun(state, end)
  const reason = toFinishReason(state.reply, state.phase === 'injecting')
  if (reason === undefined) return deliverInput(state, 'steer', now) ?? continueRun()
  const { failure, refusal, fit } = state.reply
  if (reason !== 'answered') return finishRun(state, reason, failure?.message ?? refusal?.reason)
  // An answer that does not fit, and is not asked for again.
  if (fit?.valid === false && !state.inputSinceReply) return finishRun(state, 'output_invalid', fit.error)
  // Input that arrived during the run gets an answer too: the run continues after its own.
  const more =
    deliverInput(state, 'steer', now) ??
    (state.inputSinceReply ? continueRun() : deliverInput(state, 'queue', now))
  return more ?? finishRun(state, reason)
}

/** The next action after a reply that was written or cut off because of a limit. */
function endAtLimit({
  metLimit,
  reply,
}: CollectingState | InjectingState): FinishReason | 'continue' | undefined {
  if (metLimit === undefined) return undefined
  // A closing call without a word changes nothing about why there was one.
  const endedEmpty = reply.finalizing && reply.failure?.class === 'empty_reply'
  if (reply.message.stopReason === 'failed' && !endedEmpty) return undefined
  if (reply.finalizing) return limitReasons[metLimit.limit]
  return reply.message.stopReason === 'cancelled' ? 'continue' : undefined
}

/** Law 9: the next model call, or the policy of a limit that prevents it. */
function nextTurn(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  const { metLimit } = state
  return (
    nextWhileCompacting(state, now) ??
    nextWhileGuarded(state, now) ??
    (metLimit ? nextAtLimit(state, metLimit, reply, now, rules) : startNextTurn(state, reply, now, rules))
  )
}

/** Law 8, for guardrails: no model sees input that they have not checked. */
function nextWhileGuarded(state: RunState, now: number): Action | undefined {
  const isDue = findDueInputChecks(state).before.length > 0 && state.metLimit?.policy !== 'ask'
  if (!isDue) return undefined
  const wait = waitUntil(getDeadline(state), now)
  if (wait) return wait
  if (state.metLimit === undefined) return meetLimit(state, findTimeLimit(state, now))
  return finishRun(state, limitReasons[state.metLimit.limit])
}

function startNextTurn(state: RunState, reply: Reply | undefined, now: number, rules: Rules): Action {
  const { stopWhen } = rules
  // A promise would be taken for a yes, and what forgets to answer would never stop.
  const isToStop =
    reply &&
    stopWhen &&
    requireAnswer(`stopWhen of the agent ${state.agent}`, () => stopWhen(state), trueOrFalse)
  if (isToStop) return finishRun(state, 'stopped')
  const shorter = compactBeforeCall(state, now, rules)
  if (shorter) return waitBeforeCompaction(state) ?? { kind: 'compact', facts: [shorter] }
  const sourced = rules.sourcedTools?.(state) ?? []
  const prepared = prepareCall(state, rules, {
    ...toOfferedCall(state),
    // The tools of the agent's source are recorded if they differ from those of the last turn.
    ...(!isSameSource(state, sourced) && { sourced }),
  })
  if (prepared === 'pending') {
    // The agent's code has the time that the run has for its work.
    return waitUntil(getWorkDeadline(state), now) ?? meetLimit(state, findTimeLimit(state, now))
  }
  const call = nextModelCall(state, now, prepared)
  return 'limit' in call ? meetLimit(state, call, prepared) : { kind: 'call_model', facts: [call] }
}

/** The call of the next turn as the agent's code gets to see it. */
function toOfferedCall(state: RunState, plan: CallPlanning = {}): OfferedCall {
  return {
    model: plan.model ?? getCurrentModel(state),
    toolChoice: planToolChoice(state, plan),
    ...omitUndefined({ maxOutputTokens: planOutput(state) }),
  }
}

function nextAtLimit(
  state: RunState,
  { policy, limit }: MetLimit,
  reply: Reply | undefined,
  now: number,
  rules: Rules,
): Action {
  if (policy === 'ask') return { kind: 'suspend' }
  if (policy === 'stop' || reply?.finalizing) return finishRun(state, limitReasons[limit])
  return startFinalizingCall(state, limit, now, rules)
}

/**
 * The call that writes the answer at a limit: made with what was held back for it, or not at all. What the agent's code
 * withholds from the model is withheld from this call, too.
 */
function startFinalizingCall(state: RunState, met: LimitName, now: number, rules: Rules): Action {
  const prepared = prepareCall(state, rules, toOfferedCall(state, { finalizing: true }))
  if (prepared === 'pending') {
    return waitUntil(getDeadline(state), now) ?? finishRun(state, limitReasons[met], unpreparedClosing)
  }
  const { toolChoice: _none, ...planned } = prepared
  const call = nextModelCall(state, now, { ...planned, finalizing: true })
  if (!('limit' in call)) return { kind: 'call_model', facts: [call] }
  const { limit, max } = call
  const detail = `No closing call was made: what is left of ${limit} (${max}) does not pay for one.`
  return finishRun(state, limitReasons[met], detail)
}

/** The detail of a run whose closing call its agent's code did not prepare in time. */
export const unpreparedClosing =
  'No closing call was made: prepareTurn did not answer before the time of the run was up.'

/** Hands the conversation over: to another agent, or back to the caller that started the run. */
function nextHandoff(
  state: InjectingState,
  { to, back, tool }: NonNullable<InjectingState['handoff']>,
  rules: Rules,
): Action {
  if (back) return finishRun(state, 'handed_back', to)
  const taking = rules.handOff?.(tool, readMessages(state.history))
  if (taking === undefined) {
    throw new ConfigurationError(
      `Run ${state.runId} hands over to the agent ${to}, which is no longer among the handoffs of ${state.agent}. ` +
        'Put it back, then continue the run with resume.',
    )
  }
  const { messages } = taking
  const definition = applyGivenModel(taking.definition, state.givenModel)
  requireShown(messages, `The filter of the handoff to ${to}`)
  const fact = { type: 'agent_handed_off' as const, turn: state.turn, from: state.agent, to, definition }
  return { kind: 'hand_off', facts: [{ ...fact, ...omitUndefined({ messages }) }] }
}

/** The end of a run, with a refused turn left out of the history where the agent or the vendor asks for that. */
export function withoutRefused(state: CollectingState | InjectingState, action: Action): Action {
  if (action.kind !== 'finish' || !isLeftOut(state)) return action
  const edits = toEdits(readMessages(state.history), state.exchangeFrom)
  if (edits.length === 0) return action
  const fact: FactOf<'history_edited'> = {
    type: 'history_edited',
    turn: state.turn,
    edits,
    reason: 'The model refused this exchange, and would refuse what is asked behind it.',
  }
  return { kind: 'finish', facts: [fact, ...action.facts] }
}

function isLeftOut({
  reply: { message, refusal, failure },
  definition,
}: CollectingState | InjectingState): boolean {
  const wanted = definition.onRefusal?.history
  if (message.stopReason === 'refused') {
    return wanted === undefined ? refusal?.leaveOut === true : wanted === 'leave_out'
  }
  if (failure?.class === 'refused') return wanted !== 'keep'
  return message.stopReason === 'content_filtered' && wanted === 'leave_out'
}

/** All from the first message of the exchange on; that tools ran in it, stays said. */
function toEdits(messages: readonly Message[], from: number): readonly HistoryEdit[] {
  const refused = messages.slice(from)
  const toolsRun = refused
    .flatMap((message) => (message.role === 'tool' ? message.results : []))
    .filter(({ outcome }) => !nothingRan.has(outcome))
    .map(({ name, outcome }) => `${name} (${outcome})`)
  const edits = refused.map((_, place): HistoryEdit => ({ index: from + place }))
  if (toolsRun.length === 0) return edits
  const text = `(An exchange stood here that a model refused to go on with, and it was left out. Tools that ran in it: ${toolsRun.join(', ')}.)`
  return [{ index: from, message: { role: 'user', parts: [{ type: 'text', text }] } }, ...edits.slice(1)]
}

/** Outcomes that say that the tool was not started. */
const nothingRan: ReadonlySet<Outcome> = new Set([
  'invalid_input',
  'unknown_tool',
  'denied',
  'repeated',
  'limit_reached',
  'skipped',
])

export interface CallPlanning {
  /** The one call past a limit, which writes the answer. */
  readonly finalizing?: boolean
  /** The turn's changes, with the tools of a source if they have changed. */
  readonly change?: ShownChange
  /** Absent if it is the one that the run uses now. */
  readonly model?: ModelRef
  /** Absent if it is the one that the run was given. */
  readonly toolChoice?: ToolChoice
}

type CallFact = FactOf<'model_call_started'>

/**
 * The fact that starts a model call, with what the call is granted: the first attempt of a turn, or the next attempt of
 * the same. Or the limit that leaves too little for it.
 */
export function nextModelCall(state: RunState, now: number, planning: CallPlanning): CallFact | LimitFinding {
  const again = state.phase === 'streaming'
  const { finalizing = false, change: shown = {}, model = getCurrentModel(state) } = planning
  const toolChoice = planToolChoice(state, planning)
  const grant = grantModelCall(state, now, {
    price: getPrice(state, model),
    maxWebSearches: getMaxWebSearches(state, { model, toolChoice }),
    inputTokens: estimateInputTokens(state, shown),
    startsTurn: !again,
    maxOutputTokens: planOutput(state, shown),
    finalizing,
    // A call that may ask for tools is followed by another, which a limit must leave enough for.
    keepsFinalizing:
      getOnLimit(state.limits) === 'finalize' &&
      toolChoice.type !== 'none' &&
      (shown.tools ?? filterOfferedTools(state, undefined, shown.sourced)).length > 0,
  })
  if ('limit' in grant) return grant
  const options = {
    model,
    toolChoice,
    ...omitUndefined({
      maxOutputTokens: grant.outputTokens,
      change: Object.keys(shown).length > 0 ? shown : undefined,
    }),
  }
  return {
    type: 'model_call_started',
    turn: state.turn + (again ? 0 : 1),
    attempt: again ? state.attempt.number + 1 : 1,
    requestDigest: computeRequestDigest(state, options),
    ...options,
    finalizing,
    grant,
    ...omitUndefined({ additions: digestAdditions(state.definition, model) }),
  }
}

/** The most output tokens of a reply, by the turn, the run or its agent. */
function planOutput(state: RunState, change: ShownChange = {}): number | undefined {
  const { maxOutputTokens = getSettings(state, change)?.maxOutputTokens } = change
  return maxOutputTokens ?? state.definition.maxOutputTokens
}

/** Which tools a call may ask for: the finalizing call for none. */
function planToolChoice(
  { toolChoice: given, turn }: RunState,
  { finalizing, toolChoice }: Pick<CallPlanning, 'finalizing' | 'toolChoice'>,
): ToolChoice {
  if (finalizing) return { type: 'none' }
  if (toolChoice) return toolChoice
  // That a tool is called is asked of the first turn of a run alone: asked of each, the run would never end.
  return given?.type === 'none' || (given && turn === 0) ? given : { type: 'auto' }
}

/** About how many input tokens the request has: what a turn shows instead of the history is counted again. */
function estimateInputTokens(state: RunState, change: ShownChange): number {
  const { instructions, tools, sourced } = change
  if (!showsOtherWords(change)) return Math.max(0, state.contextTokens + estimateChangeTokens(state, sourced))
  const shown = {
    ...state.definition,
    ...omitUndefined({ instructions }),
    tools: filterOfferedTools(state, tools, sourced),
  }
  const tokens = estimateRequestTokens(shown, readShownMessages(state.history, change))
  return Math.ceil(tokens * state.estimateFactor)
}

/**
 * The same call once more. A finalizing call whose limit was raised since continues as an ordinary one, so its choice of no
 * tools is not repeated.
 */
export function repeatModelCall(
  state: StreamingState,
  now: number,
  model?: ModelRef,
): CallFact | LimitFinding {
  // The tools of the source are in the state since the first attempt.
  const { sourced: _recorded, ...change } = state.attempt.change ?? {}
  return nextModelCall(state, now, { ...repeatPlan(state, model), change })
}

/** The parts of a call that its repetition keeps, whatever it shows. */
function repeatPlan(
  state: StreamingState,
  model?: ModelRef,
): Omit<CallPlanning, 'change'> & { readonly model: ModelRef } {
  const { toolChoice, finalizing, model: last } = state.attempt
  return {
    finalizing: finalizing && state.metLimit !== undefined,
    model: model ?? (namesModel(state.definition, last) ? last : getCurrentModel(state)),
    ...(!finalizing && { toolChoice }),
  }
}

/** Failures that another model would answer with as well: the request itself is at fault. */
const requestAtFault: ReadonlySet<FailureClass> = new Set(['invalid_request', 'content_filtered'])

/** Returns the model that takes over when the runtime gives up a model; `undefined` after the last. */
export function findModelAfterGivingUp(state: StreamingState): ModelRef | undefined {
  const { failed } = state.attempt
  if (failed === undefined || requestAtFault.has(failed.failure.class)) return undefined
  return findNextFallback(state)
}

/** Returns the model after the current one; `undefined` after the last. */
export function findNextFallback({ definition, attempt }: StreamingState): ModelRef | undefined {
  const models = listModels(definition)
  return models[models.findIndex((known) => isSameModel(known, attempt.model)) + 1]
}

/**
 * Lets input that was given while the run was at work enter the history: everything that steers at once, what was
 * queued one by one, each after the answer before it.
 */
function deliverInput(state: RunState, delivery: 'steer' | 'queue', now: number): Action | undefined {
  const waiting = state.pendingInputs.filter((input) => input.delivery === delivery)
  const due = delivery === 'steer' ? waiting : waiting.slice(0, 1)
  if (due.length === 0) return undefined
  // Not where a limit ends the run in front of the model call that would show it.
  if (getOnLimit(state.limits) === 'stop' && 'limit' in nextModelCall(state, now, {})) return undefined
  const facts = due.map(({ inputId }): Fact => ({
    type: 'input_settled',
    turn: state.turn,
    receipt: inputId,
    delivered: true,
  }))
  return { kind: 'deliver_input', facts }
}

/** Why the run ends with this reply; `undefined` when it continues. */
function toFinishReason({ message, failure }: Reply, hadCalls: boolean): FinishReason | undefined {
  switch (message.stopReason) {
    case 'refused':
    case 'content_filtered':
      return 'refused'
    case 'max_tokens':
      return 'output_truncated'
    case 'context_exceeded':
      return 'context_overflow'
    case 'cancelled':
      return 'cancelled'
    case 'failed':
      return toFailureReason(failure?.class)
    case 'paused':
    case 'compacted':
      return undefined
    case 'end':
    case 'tool_use':
    case 'other':
      return hadCalls ? undefined : 'answered'
  }
}

export function toFailureReason(failureClass: string | undefined): FinishReason {
  if (failureClass === 'context_overflow' || failureClass === 'empty_reply') return failureClass
  return failureClass === 'content_filtered' || failureClass === 'refused' ? 'refused' : 'model_failed'
}

/** Returns the end of a run that was cancelled or that a guardrail blocks; else `undefined`. */
function endIfStopped(state: RunState): ReturnType<typeof finishRun> | undefined {
  if (state.cancel) return finishRun(state, 'cancelled')
  if (state.blocked === undefined) return undefined
  const { guardrail, detail } = state.blocked
  return finishRun(state, 'guardrail', detail === undefined ? guardrail : `${guardrail}: ${detail}`)
}

/** Ends the run, and settles all input that it ends without. */
function finishRun(
  state: RunState,
  reason: FinishReason,
  detail?: string,
): Extract<Action, { readonly facts: readonly Fact[] }> {
  const { turns, toolCalls, usage, costUsd } = state.totals
  const end: Fact = {
    type: 'run_finished',
    turn: state.turn,
    reason,
    turns,
    toolCalls,
    usage,
    ...omitUndefined({ costUsd, detail }),
  }
  const why = `The run ended before it (${reason}).`
  const undelivered = state.pendingInputs.map(({ inputId }): Fact => ({
    type: 'input_settled',
    turn: state.turn,
    receipt: inputId,
    delivered: false,
    why,
  }))
  return { kind: 'finish', facts: [...undelivered, end] }
}
