import type { Outcome } from '../vocabulary/content.ts'
import type { Fact, FactOf } from '../vocabulary/event.ts'
import { defaultLimits } from '../vocabulary/limits.ts'
import type { Action } from './action.ts'
import { startOf } from './decide-tool-signal.ts'
import { digestOf } from './digest.ts'
import { callsLeft, meetLimit } from './limit-check.ts'
import { textContent } from './outcome-text.ts'
import type { Call, CallStatus, ExecutingState, RunState } from './state.ts'

/** What is owed while the calls of a turn are open: results first, then questions, then starts, then the injection. */
export function nextForCalls(state: ExecutingState, now: number): Action {
  return (
    recorded('settle_calls', state.cancel ? cancelled(state, state.cancel.at, now) : []) ??
    recorded('settle_calls', refused(state)) ??
    (state.cancel ? undefined : (limited(state) ?? ask(state) ?? recorded('run_tools', starts(state)))) ??
    inject(state) ??
    rest(state)
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
    if (call.status === 'started' && !late) return []
    const doubtful = call.attempts > 0 && call.status !== 'started'
    return [resultFact(state, call, doubtful ? 'interrupted' : 'cancelled')]
  })
}

function graceMs(state: RunState): number {
  return state.limits.graceMs ?? defaultLimits.graceMs
}

/** Law 9 for tool calls: those past a limit do not start. */
function limited(state: ExecutingState): Action | undefined {
  const perTurn = state.limits.toolCallsPerTurnMax ?? Infinity
  const pending = state.calls.filter((call) => call.attempts === 0 && isPending(call.status))
  const tooMany = pending.filter((call) => state.calls.indexOf(call) >= perTurn)
  const { metLimit } = state
  if (tooMany.length > 0) {
    const text = `At most ${perTurn} tool calls are run for one reply. Nothing was run; ask for this call again.`
    return {
      kind: 'settle_calls',
      facts: tooMany.map((call) => resultFact(state, call, 'limit_reached', text)),
    }
  }
  const past = pending.slice(Math.max(0, callsLeft(state)))
  if (past.length === 0) return undefined
  if (metLimit === undefined) {
    return meetLimit(state, {
      limit: 'toolCallsMax',
      max: state.limits.toolCallsMax ?? 0,
      used: state.totals.toolCalls,
    })
  }
  if (metLimit.policy === 'ask') return undefined
  return { kind: 'settle_calls', facts: past.map((call) => resultFact(state, call, 'limit_reached')) }
}

const isPending = (status: CallStatus): boolean =>
  status === 'ready' || status === 'to_ask' || status === 'awaiting_approval'

function ask(state: ExecutingState): Action | undefined {
  const again = withStatus(state, 'in_doubt').filter((call) => call.recovery === 'ask')
  const calls = [...withStatus(state, 'to_ask'), ...again]
  if (calls.length === 0) return undefined
  const facts = calls.map((call): FactOf<'approval_requested'> => {
    const reason =
      call.attempts > 0
        ? 'It was started before, and nobody knows whether it took effect. Approve to start it again.'
        : call.askReason
    return {
      ...{ type: 'approval_requested', turn: state.turn, toolCallId: call.toolCallId, name: call.name },
      ...{ attempt: call.attempts + 1, inputDigest: call.inputDigest ?? digestOf(call.input) },
      ...(reason !== undefined && { reason }),
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
  const busy = state.calls.some((call) => call.status === 'started' || call.status === 'in_doubt')
  if (!busy) return { kind: 'suspend' }
  return state.cancel ? { kind: 'wait', wakeAt: state.cancel.at + graceMs(state) } : { kind: 'wait' }
}

function withStatus(state: ExecutingState, status: CallStatus): readonly Call[] {
  return state.calls.filter((call) => call.status === status)
}

/** The result that the runtime itself gives a call: its own words for the outcome where no `text` says more. */
export function resultFact(
  state: RunState,
  call: Call,
  outcome: Outcome,
  text?: string,
): FactOf<'tool_result'> {
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
  outcome: 'skipped' | 'cancelled' | 'limit_reached',
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
