import type { Fact, FactOf } from '../../vocabulary/events/event.ts'
import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import { getOwn } from '../../vocabulary/values/get-own.ts'
import type { Action } from '../state/action.ts'
import { leftOf, spentOf } from '../limits/budget.ts'
import { sameAnswers } from '../messages/call-log.ts'
import { meetLimit } from '../limits/limit-reached.ts'
import { repeatLimit } from '../limits/limit-finding.ts'
import { textContent } from '../messages/outcome-text.ts'
import { callsAwaitingEqual } from '../limits/repeat-waits.ts'
import { resultFact } from './result-fact.ts'
import type { Call, ExecutingState } from '../state/state.ts'

const isUnstarted = (call: Call): boolean =>
  call.attempts === 0 && ['ready', 'to_ask', 'awaiting_approval'].includes(call.status)

/** Law 9 for tool calls: those past a limit do not start. */
export function nextForCallLimits(state: ExecutingState): Action | undefined {
  const pending = state.calls.filter(isUnstarted)
  const tooMany = settleAction(pending.flatMap((call) => overTurnOrToolLimit(state, call)))
  if (tooMany) return tooMany
  const { metLimit } = state
  if (metLimit && metLimit.limit !== 'maxToolCalls') {
    return refuseCalls(state, pending)
  }
  // What a child run does not use of its grant is left for the calls that wait.
  const past = childrenAtWork(state) ? [] : toBeStarted(state, pending).slice(leftOf(state).toolCalls)
  if (past.length > 0 && metLimit === undefined) {
    const { maxToolCalls: max = 0 } = state.limits
    return meetLimit(state, { limit: 'maxToolCalls', max, used: spentOf(state).toolCalls })
  }
  if (metLimit?.policy === 'ask') return undefined
  return (
    refuseCalls(state, past) ?? (metLimit === undefined ? nextWithoutProgress(state, pending) : undefined)
  )
}

function nextWithoutProgress(state: ExecutingState, pending: readonly Call[]): Action | undefined {
  const [repeats] = pending.flatMap((call) => repeatLimit(state, call) ?? [])
  return repeats && meetLimit(state, repeats)
}

function refuseCalls(state: ExecutingState, calls: readonly Call[]): Action | undefined {
  return settleAction(calls.map((call) => resultFact(state, call, 'limit_reached')))
}

function settleAction(facts: readonly Fact[]): Action | undefined {
  return facts.length > 0 ? { kind: 'settle_calls', facts } : undefined
}

function childrenAtWork(state: ExecutingState): boolean {
  return state.calls.some(({ grant, status }) => grant !== undefined && status !== 'settled')
}

/** Those of some calls that take a start: not those that are served a recorded answer, or that may yet be. */
function toBeStarted(state: ExecutingState, calls: readonly Call[]): readonly Call[] {
  const waiting = callsAwaitingEqual(state)
  const served = new Set(repeatedResults(state).map(({ toolCallId }) => toolCallId))
  return calls.filter((call) => !waiting.has(call) && !served.has(call.toolCallId))
}

/** Limits that refuse a call and let the run continue. */
function overTurnOrToolLimit(state: ExecutingState, call: Call): readonly Fact[] {
  const { maxToolCallsPerTurn = Infinity, maxCallsByTool = {} } = state.limits
  if (state.calls.indexOf(call) >= maxToolCallsPerTurn) {
    const text = `At most ${maxToolCallsPerTurn} tool calls are run for one reply. Nothing was run; ask for this call again.`
    return [resultFact(state, call, 'limit_reached', text)]
  }
  const max = getOwn(maxCallsByTool, call.name) ?? Infinity
  const sameTool = state.calls.filter(({ name, attempts }) => name === call.name && attempts === 0)
  const before =
    (getOwn(state.totals.toolCallsByTool, call.name) ?? 0) + sameTool.filter(isUnstarted).indexOf(call)
  if (before < max) return []
  const text = `${call.name} may be called ${max} times in a run, and that often it was. Nothing was run; go on without it.`
  return [resultFact(state, call, 'limit_reached', text)]
}

/** No progress: a call that has given the same answer again and again is not run; its recorded answer is served. */
export function repeatedResults(state: ExecutingState): readonly FactOf<'tool_result'>[] {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  return state.calls.filter(isUnstarted).flatMap((call) => {
    const { name, inputDigest } = call
    if (call.status === 'awaiting_approval' || inputDigest === undefined) return []
    const [last, ...others] = sameAnswers(state.callLog, { name, inputDigest })
    if (last === undefined || others.length + 1 < max) return []
    const note = `This call was made ${others.length + 1} times before with the same answer, so it was not run again. The answer was:`
    const content = [...textContent('repeated', note), ...last.result.content]
    return [{ ...resultFact(state, call, 'repeated'), content }]
  })
}
