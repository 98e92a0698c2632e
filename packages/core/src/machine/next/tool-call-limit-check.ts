import type { Fact, FactOf } from '../../vocabulary/events/event.ts'
import { defaultLimits } from '../../vocabulary/limits/limits.ts'
import { getOwn } from '../../vocabulary/values/get-own.ts'
import type { Action } from '../state/action.ts'
import { spentOf, toolCallsLeft } from '../limits/budget.ts'
import { longestStreak } from '../messages/call-log.ts'
import { mayRepeat, meetLimit, repeatLimit } from '../limits/limit-finding.ts'
import { textContent } from '../messages/outcome-text.ts'
import { callsAwaitingEqual, callsBehindChange, repeatedAnswers } from '../limits/repeats.ts'
import { resultFact } from './result-fact.ts'
import type { Call, ExecutingState } from '../state/state.ts'
import { summaryOf } from '../state/turn-calls.ts'

function isUnstarted({ attempts, status }: Call): boolean {
  return attempts === 0 && (status === 'ready' || status === 'to_ask' || status === 'awaiting_approval')
}

/** The calls that were not started yet and may be. */
function unstartedCalls(state: ExecutingState): readonly Call[] {
  return mostUnstarted(state) === 0 ? [] : state.calls.filter(isUnstarted)
}

/** No more calls than this were not started yet and may be. */
function mostUnstarted({ calls }: ExecutingState): number {
  const { ready, to_ask, awaiting_approval } = summaryOf(calls).counts
  return ready + to_ask + awaiting_approval
}

/** Law 9 for tool calls: those past a limit do not start. */
export function nextForCallLimits(state: ExecutingState): Action | undefined {
  const tooMany = settleAction(resultsOverLimits(state))
  if (tooMany) return tooMany
  const { metLimit } = state
  if (metLimit && metLimit.limit !== 'maxToolCalls') {
    return refuseCalls(state, unstartedCalls(state))
  }
  const past = callsPastLimit(state)
  if (past.length > 0 && metLimit === undefined) {
    const { maxToolCalls: max = 0 } = state.limits
    return meetLimit(state, { limit: 'maxToolCalls', max, used: spentOf(state).toolCalls })
  }
  if (metLimit?.policy === 'ask') return undefined
  return refuseCalls(state, past) ?? (metLimit === undefined ? nextWithoutProgress(state) : undefined)
}

function nextWithoutProgress(state: ExecutingState): Action | undefined {
  if (!mayRepeat(state)) return undefined
  const behind = callsBehindChange(state)
  const [repeats] = unstartedCalls(state)
    .filter((call) => !behind.has(call))
    .flatMap((call) => repeatLimit(state, call) ?? [])
  return repeats && meetLimit(state, repeats)
}

function refuseCalls(state: ExecutingState, calls: readonly Call[]): Action | undefined {
  return settleAction(calls.map((call) => resultFact(state, call, 'limit_reached')))
}

function settleAction(facts: readonly Fact[]): Action | undefined {
  return facts.length > 0 ? { kind: 'settle_calls', facts } : undefined
}

/** The calls that wait for a start which `maxToolCalls` does not leave them. */
function callsPastLimit(state: ExecutingState): readonly Call[] {
  const left = toolCallsLeft(state)
  // What a child run does not use of its grant is left for the calls that wait.
  if (mostUnstarted(state) <= left || childrenAtWork(state)) return []
  return toBeStarted(state, unstartedCalls(state)).slice(left)
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

/** The results of calls that a limit refuses, though it lets the run continue. */
function resultsOverLimits(state: ExecutingState): readonly Fact[] {
  const { maxToolCallsPerTurn = Infinity, maxCallsByTool = {} } = state.limits
  if (state.calls.length <= maxToolCallsPerTurn && Object.keys(maxCallsByTool).length === 0) return []
  /** Of each tool, the calls that were started, and those that come first. */
  const takenByTool = new Map<string, number>()
  return state.calls.flatMap((call, place) => {
    if (!isUnstarted(call)) return []
    const { name } = call
    const taken = takenByTool.get(name) ?? getOwn(state.totals.toolCallsByTool, name) ?? 0
    takenByTool.set(name, taken + 1)
    if (place >= maxToolCallsPerTurn) {
      const text = `At most ${maxToolCallsPerTurn} tool calls are run for one reply. Nothing was run; ask for this call again.`
      return [resultFact(state, call, 'limit_reached', text)]
    }
    const max = getOwn(maxCallsByTool, name) ?? Infinity
    if (taken < max) return []
    const text = `${name} may be called ${max} times in a run, and that often it was. Nothing was run; go on without it.`
    return [resultFact(state, call, 'limit_reached', text)]
  })
}

/**
 * No progress: a read that has given the same answer again and again, while nothing happened, is not run; its recorded
 * answer is served.
 */
export function repeatedResults(state: ExecutingState): readonly FactOf<'tool_result'>[] {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  if (longestStreak(state.callLog) < max) return []
  const behind = callsBehindChange(state)
  return unstartedCalls(state).flatMap((call) => {
    if (call.status === 'awaiting_approval' || behind.has(call)) return []
    const [last, ...others] = repeatedAnswers(state, call)
    if (last === undefined || others.length + 1 < max) return []
    const note = `This call was made ${others.length + 1} times with the same answer, and nothing has changed since, so it was not run again. Do something else, or answer with what you know. The answer was:`
    const content = [...textContent('repeated', note), ...last.result.content]
    return [{ ...resultFact(state, call, 'repeated'), content }]
  })
}
