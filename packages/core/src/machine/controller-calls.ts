import type { Outcome } from '../vocabulary/content.ts'
import type { Fact, FactOf } from '../vocabulary/event.ts'
import { defaultLimits } from '../vocabulary/limits.ts'
import { ownValue } from '../vocabulary/own-value.ts'
import type { Action } from './action.ts'
import { isAtWork, startOf } from './decide-tool-signal.ts'
import { digestOf } from './digest.ts'
import { dueResultsCheck } from './due-checks.ts'
import { effectsOf, stopReason } from './effects-of.ts'
import { sameAnswers } from './call-log.ts'
import { activeMs, callsLeft, deadlineOf, meetLimit, repeatLimit } from './limit-check.ts'
import { textContent } from './outcome-text.ts'
import type { Call, CallStatus, ExecutingState, RunState } from './state.ts'

/** What is owed while the calls of a turn are open: results first, then questions, then starts, then the injection. */
export function nextForCalls(state: ExecutingState, now: number): Action {
  return (
    recorded('settle_calls', state.cancel ? cancelled(state, state.cancel.at, now) : []) ??
    recorded('settle_calls', [...refused(state), ...overdue(state, now)]) ??
    (state.cancel ? undefined : goOn(state, now)) ??
    (dueResultsCheck(state) ? { kind: 'wait' as const } : inject(state)) ??
    rest(state)
  )
}

/** What is owed to a run that nobody has cancelled. */
function goOn(state: ExecutingState, now: number): Action | undefined {
  const { metLimit } = state
  // A limit that a person is asked about holds everything back that it could forbid.
  if (metLimit?.policy === 'ask' && metLimit.limit !== 'toolCallsMax') return undefined
  return (
    timeIsUp(state, now) ??
    limited(state) ??
    recorded('settle_calls', repeated(state)) ??
    expired(state, now) ??
    ask(state, now) ??
    recorded('run_tools', starts(state))
  )
}

function recorded(kind: 'settle_calls' | 'run_tools', facts: readonly Fact[]): Action | undefined {
  return facts.length > 0 ? { kind, facts } : undefined
}

/** Calls that never were to run get the result that was decided when they were collected, or denied. */
function refused(state: ExecutingState): readonly Fact[] {
  return withStatus(state, 'to_settle').map((call) =>
    resultFact(state, call, call.refusal?.outcome ?? 'skipped', call.refusal?.text),
  )
}

/** Calls that were to be settled later, and were not in their time. */
function overdue(state: ExecutingState, now: number): readonly Fact[] {
  const late = withStatus(state, 'deferred').filter(
    ({ deferred }) => now >= (deferred?.deadlineAt ?? Infinity),
  )
  const text = 'Nobody settled this call in its time. It may have had an effect all the same.'
  return late.map((call) => resultFact(state, call, 'timed_out', text))
}

/** Calls in doubt that are not to be started again, by what the tool declared. */
function reported(state: ExecutingState): readonly Call[] {
  return withStatus(state, 'in_doubt').filter((call) => (call.recovery ?? 'report') === 'report')
}

/**
 * After a cancel nothing starts, what has not started ends at once, and what runs has the grace time to end by itself.
 */
function cancelled(state: ExecutingState, cancelledAt: number, now: number): readonly Fact[] {
  const late = now >= cancelledAt + graceMs(state)
  return state.calls.flatMap((call) => {
    if (call.status === 'settled') return []
    if (isAtWork(call) && !late) return []
    const doubtful = call.attempts > 0 && call.status !== 'started'
    return [resultFact(state, call, doubtful ? 'interrupted' : 'cancelled')]
  })
}

function graceMs(state: RunState): number {
  return state.limits.graceMs ?? defaultLimits.graceMs
}

/** When the run's time is up, what runs is asked to stop, and has the grace time to do so. */
function timeIsUp(state: ExecutingState, now: number): Action | undefined {
  const deadline = deadlineOf(state)
  if (deadline === undefined || state.reply.finalizing) return undefined
  const { metLimit } = state
  if (metLimit === undefined) {
    const max = state.limits.durationMaxMs ?? 0
    return now < deadline
      ? undefined
      : meetLimit(state, { limit: 'durationMaxMs', max, used: activeMs(state, now) })
  }
  if (metLimit.limit !== 'durationMaxMs' || now < metLimit.at + graceMs(state)) return undefined
  const text = 'The time of the run is up, and the tool did not stop. It may have had an effect all the same.'
  return recorded(
    'settle_calls',
    withStatus(state, 'started').map((call) => resultFact(state, call, 'timed_out', text)),
  )
}

const isPending = (call: Call): boolean =>
  call.attempts === 0 && ['ready', 'to_ask', 'awaiting_approval'].includes(call.status)

/** Law 9 for tool calls: those past a limit do not start. */
function limited(state: ExecutingState): Action | undefined {
  const pending = state.calls.filter(isPending)
  const tooMany = recorded(
    'settle_calls',
    pending.flatMap((call) => pastTurnOrTool(state, call)),
  )
  if (tooMany) return tooMany
  const { metLimit } = state
  if (metLimit && metLimit.limit !== 'toolCallsMax') {
    return recorded(
      'settle_calls',
      pending.map((call) => resultFact(state, call, 'limit_reached')),
    )
  }
  const past = pending.slice(Math.max(0, callsLeft(state)))
  if (past.length > 0 && metLimit === undefined) {
    const { toolCallsMax = 0 } = state.limits
    return meetLimit(state, { limit: 'toolCallsMax', max: toolCallsMax, used: state.totals.toolCalls })
  }
  if (metLimit?.policy === 'ask') return undefined
  const repeats = pending.flatMap((call) => repeatLimit(state, call) ?? [])[0]
  return (
    recorded(
      'settle_calls',
      past.map((call) => resultFact(state, call, 'limit_reached')),
    ) ?? (repeats && metLimit === undefined ? meetLimit(state, repeats) : undefined)
  )
}

/** Limits that turn away a call and let the run go on. */
function pastTurnOrTool(state: ExecutingState, call: Call): readonly Fact[] {
  const { toolCallsPerTurnMax = Infinity, callsMaxByTool = {} } = state.limits
  if (state.calls.indexOf(call) >= toolCallsPerTurnMax) {
    const text = `At most ${toolCallsPerTurnMax} tool calls are run for one reply. Nothing was run; ask for this call again.`
    return [resultFact(state, call, 'limit_reached', text)]
  }
  const max = ownValue(callsMaxByTool, call.name) ?? Infinity
  const sameTool = state.calls.filter(({ name, attempts }) => name === call.name && attempts === 0)
  const before =
    (ownValue(state.totals.toolCallsByTool, call.name) ?? 0) + sameTool.filter(isPending).indexOf(call)
  if (before < max) return []
  const text = `${call.name} may be called ${max} times in a run, and that often it was. Nothing was run; go on without it.`
  return [resultFact(state, call, 'limit_reached', text)]
}

/** No progress: a call that has given the same answer again and again is not run; its recorded answer is served. */
function repeated(state: ExecutingState): readonly Fact[] {
  const max = state.limits.repeatsMax ?? defaultLimits.repeatsMax
  return state.calls.filter(isPending).flatMap((call) => {
    const { name, inputDigest } = call
    if (call.status === 'awaiting_approval' || inputDigest === undefined) return []
    const [last, ...others] = sameAnswers(state.callLog, { name, inputDigest })
    if (last === undefined || others.length + 1 < max) return []
    const note = `This call was made ${others.length + 1} times before with the same answer, so it was not run again. The answer was:`
    const content = [...textContent('repeated', note), ...last.result.content]
    return [{ ...resultFact(state, call, 'repeated'), content }]
  })
}

/** An approval that nobody has decided in its time counts as denied. */
function expired(state: ExecutingState, now: number): Action | undefined {
  const late = withStatus(state, 'awaiting_approval').filter(({ expiresAt = Infinity }) => now >= expiresAt)
  if (late.length === 0) return undefined
  const facts = late.map(({ toolCallId, attempts, inputDigest = '' }): FactOf<'approval_decided'> => ({
    ...{ type: 'approval_decided', turn: state.turn, toolCallId, attempt: attempts + 1, inputDigest },
    ...{ approved: false, by: 'expiry', reason: 'nobody decided in time' },
  }))
  return { kind: 'ask_approval', facts }
}

function ask(state: ExecutingState, now: number): Action | undefined {
  const again = withStatus(state, 'in_doubt').filter((call) => call.recovery === 'ask')
  const calls = [...withStatus(state, 'to_ask'), ...again]
  if (calls.length === 0) return undefined
  const { approvalMaxMs } = state.limits
  const facts = calls.map((call): FactOf<'approval_requested'> => {
    const reason =
      call.attempts > 0
        ? 'It was started before, and nobody knows whether it took effect. Approve to start it again.'
        : call.askReason
    return {
      ...{ type: 'approval_requested', turn: state.turn, toolCallId: call.toolCallId, name: call.name },
      ...{ attempt: call.attempts + 1, inputDigest: call.inputDigest ?? digestOf(call.input) },
      ...(reason !== undefined && { reason }),
      ...(approvalMaxMs !== undefined && { expiresAt: now + Math.ceil(approvalMaxMs) }),
    }
  })
  return { kind: 'ask_approval', facts }
}

/** Reads start together up to the limit; writes start one at a time, in request order. */
function starts(state: ExecutingState): readonly Fact[] {
  const doubtful = reported(state).map((call) => resultFact(state, call, 'interrupted'))
  if (doubtful.length > 0) return doubtful
  const startable = new Set(state.calls.filter((call) => call.status === 'ready' || isRerun(call)))
  const writes = state.calls.filter((call) => call.effect !== 'read')
  const nextWrite = writes.find((call) => call.status !== 'settled')
  const running = state.calls.filter((call) => call.effect === 'read' && call.status === 'started').length
  const room = Math.max(0, (state.limits.concurrencyMax ?? defaultLimits.concurrencyMax) - running)
  const reads = state.calls.filter((call) => call.effect === 'read' && startable.has(call)).slice(0, room)
  const chosen = state.calls.filter(
    (call) => startable.has(call) && (call === nextWrite || reads.includes(call)),
  )
  const allowed = Math.max(0, callsLeft(state))
  let fresh = 0
  return chosen.flatMap((call) => {
    if (call.attempts === 0 && ++fresh > allowed) return []
    return [startOf(state.runId, call, { turn: state.turn, toolCallId: call.toolCallId })]
  })
}

const isRerun = (call: Call): boolean => call.status === 'in_doubt' && call.recovery === 'rerun'

/** Law 3: all results enter together, in request order. */
function inject(state: ExecutingState): Action | undefined {
  if (state.calls.some((call) => call.status !== 'settled')) return undefined
  const toolCallIds = state.calls.map((call) => call.toolCallId)
  return { kind: 'inject', facts: [{ type: 'tool_results_injected', turn: state.turn, toolCallIds }] }
}

/** Nothing to record: something runs, or only a person can go on. */
function rest(state: ExecutingState): Action {
  if (effectsOf(state).length === 0) return { kind: 'suspend' }
  const wakeAt = graceEnd(state) ?? (state.metLimit ? undefined : deadlineOf(state))
  return wakeAt === undefined || state.reply.finalizing ? { kind: 'wait' } : { kind: 'wait', wakeAt }
}

/** When tools that were asked to stop are left behind; `undefined` where none was. */
function graceEnd(state: ExecutingState): number | undefined {
  if (state.cancel) return state.cancel.at + graceMs(state)
  return stopReason(state) === undefined || !state.metLimit ? undefined : state.metLimit.at + graceMs(state)
}

function withStatus(state: ExecutingState, status: CallStatus): readonly Call[] {
  return state.calls.filter((call) => call.status === status)
}

/** The result that the runtime itself gives a call: its own words for the outcome where no `text` says more. */
function resultFact(state: RunState, call: Call, outcome: Outcome, text?: string): FactOf<'tool_result'> {
  const { toolCallId, name } = call
  return {
    type: 'tool_result',
    turn: state.turn,
    toolCallId,
    name,
    outcome,
    content: textContent(outcome, text),
  }
}

/** Closes calls that will not run: as results where they are open, collected first where they are not yet. */
export function settleAll(
  state: RunState,
  calls: readonly Call[],
  outcome: 'skipped' | 'cancelled' | 'limit_reached' | 'denied',
): readonly Fact[] {
  const open = calls.filter((call) => call.status !== 'settled')
  if (state.phase !== 'collecting') return open.map((call) => resultFact(state, call, outcome))
  const text = textContent(outcome)[0]?.text ?? ''
  const collected = open.map(({ toolCallId, name, input }) => ({
    ...{
      toolCallId,
      name,
      plan: 'settle' as const,
      inputDigest: digestOf(input),
      refusal: { outcome, text },
    },
  }))
  return [{ type: 'tool_requests_collected', turn: state.turn, calls: collected }]
}
