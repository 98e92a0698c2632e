import { type Outcome } from '../events/content.ts'
import { type Fact, type FactOf } from '../events/event.ts'
import { defaultLimits } from '../events/limits.ts'
import { getOwn } from '../values/json.ts'
import { sumSpent, computeLeft, assumeChildTotals } from './budget.ts'
import { summarizeCalls, toTextContent, toCallKey, isUnstarted, listUnstarted } from './calls.ts'
import { type LoggedCall, listSameAnswers } from './history.ts'
import { meetLimit } from './limits.ts'
import { type Action, recordFacts } from './rules.ts'
import { type Call, type ExecutingState, type RunState } from './state.ts'

/** Law 9 for tool calls: those past a limit do not start. */
export function nextForCallLimits(state: ExecutingState): Action | undefined {
  const tooMany = recordFacts('settle_calls', refuseOverLimits(state))
  if (tooMany) return tooMany
  const { metLimit } = state
  if (metLimit && metLimit.limit !== 'maxToolCalls') {
    return refuseCalls(state, listUnstarted(state))
  }
  const past = listCallsPastLimit(state)
  if (past.length > 0 && metLimit === undefined) {
    const { maxToolCalls: max = 0 } = state.limits
    return meetLimit(state, { limit: 'maxToolCalls', max, used: sumSpent(state).toolCalls })
  }
  if (metLimit?.policy === 'ask') return undefined
  return refuseCalls(state, past) ?? (metLimit === undefined ? meetRepeatLimit(state) : undefined)
}

function refuseCalls(state: ExecutingState, calls: readonly Call[]): Action | undefined {
  return recordFacts(
    'settle_calls',
    calls.map((call) => toResultFact(state, call, 'limit_reached')),
  )
}

/** The result that the runtime itself gives a call: its own words for the outcome where no `text` says more. */
export function toResultFact(
  state: RunState,
  call: Call,
  outcome: Outcome,
  text?: string,
): FactOf<'tool_result'> {
  const { toolCallId, name, grant } = call
  return {
    type: 'tool_result',
    turn: state.turn,
    toolCallId,
    name,
    outcome,
    content: toTextContent(outcome, text),
    ...(grant && state.phase === 'executing' && { child: assumeChildTotals(state, call) }),
  }
}

/** The results of calls that a limit refuses, though it lets the run continue. */
function refuseOverLimits(state: ExecutingState): readonly Fact[] {
  const { maxToolCallsPerTurn = Infinity, maxCallsByTool = {} } = state.limits
  if (state.calls.length <= maxToolCallsPerTurn && Object.keys(maxCallsByTool).length === 0) return []
  /** Of each tool, the calls that were started, and those that come first. */
  const takenByTool = new Map<string, number>()
  return state.calls.flatMap((call, place) => {
    if (!isUnstarted(call)) return []
    const { name } = call
    const taken = takenByTool.get(name) ?? getOwn(state.totals.toolCallsByTool, name) ?? 0
    takenByTool.set(name, taken + 1)
    let text: string | undefined
    if (place >= maxToolCallsPerTurn) {
      text = `At most ${maxToolCallsPerTurn} tool calls are run for one reply. Nothing was run; ask for this call again.`
    } else {
      const max = getOwn(maxCallsByTool, name) ?? Infinity
      if (taken < max) return []
      text = `${name} may be called ${max} times in a run, and that often it was. Nothing was run; go on without it.`
    }
    return [toResultFact(state, call, 'limit_reached', text)]
  })
}

/** The calls that wait for a start which `maxToolCalls` does not leave them. */
function listCallsPastLimit(state: ExecutingState): readonly Call[] {
  const left = computeLeft(state).toolCalls
  const unstarted = listUnstarted(state)
  if (unstarted.length <= left) return []
  // Calls that wait may get the unused part of a child run's grant.
  if (state.calls.some(({ grant, status }) => grant && status !== 'settled')) return []
  // A call that gets a recorded answer uses no start, and one that may still get it does not either.
  const waiting = findCallsAwaitingEqual(state)
  const served = new Set(serveRepeats(state).map(({ toolCallId }) => toolCallId))
  return unstarted.filter((call) => !waiting.has(call) && !served.has(call.toolCallId)).slice(left)
}

function meetRepeatLimit(state: ExecutingState): Action | undefined {
  const { limits, standstill, errorStreaks } = state
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  // The first error repeats nothing.
  const maxErrors = Math.max(2, max)
  const isStuck = standstill.served >= max
  if (!isStuck && !Object.values(errorStreaks).some(({ count }) => count >= maxErrors)) return undefined
  const behind = findCallsBehindChange(state)
  for (const call of listUnstarted(state)) {
    if (behind.has(call)) continue
    if (isStuck && findRepeatedAnswers(state, call).length >= max)
      return meetLimit(state, { limit: 'maxRepeats', max, used: standstill.served })
    const errors = call.repeats === undefined ? (getOwn(errorStreaks, call.name)?.count ?? 0) : 0
    if (errors >= maxErrors) return meetLimit(state, { limit: 'maxRepeats', max, used: errors })
  }
  return undefined
}

/**
 * No progress: a read that has given the same answer again and again, while nothing happened, is not run; its recorded
 * answer is served.
 */
export function serveRepeats(state: ExecutingState): readonly FactOf<'tool_result'>[] {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  if (state.callLog.length < max) return []
  const behind = findCallsBehindChange(state)
  return listUnstarted(state).flatMap((call) => {
    if (call.status === 'awaiting_approval' || behind.has(call)) return []
    const [last, ...others] = findRepeatedAnswers(state, call)
    if (last === undefined || others.length + 1 < max) return []
    const note = `This call was made ${others.length + 1} times with the same answer, and nothing has changed since, so it was not run again. Do something else, or answer with what you know. The answer was:`
    const content = [...toTextContent('repeated', note), ...last.result.content]
    return [{ ...toResultFact(state, call, 'repeated'), content }]
  })
}

/**
 * The equal answers in a row that a call has got since anything happened that may change them; none for a call that may
 * itself change something, or whose tool is meant to be asked again.
 */
export function findRepeatedAnswers({ callLog, standstill }: RunState, call: Call): readonly LoggedCall[] {
  const { name, inputDigest } = call
  if (!isComparable(call) || inputDigest === undefined) return []
  return listSameAnswers(callLog, { name, inputDigest }, standstill.from)
}

function isComparable({ effect, repeats }: Call): boolean {
  return effect === 'read' && repeats === undefined
}

/** The calls that stand in a reply behind one that may still change what they answer: they run, whatever was said before. */
function findCallsBehindChange({ calls }: ExecutingState): ReadonlySet<Call> {
  const place = calls.findIndex(mayChangeAnswers)
  return new Set(place === -1 ? [] : calls.slice(place + 1))
}

function mayChangeAnswers({ effect, status }: Call): boolean {
  return effect !== 'read' && status !== 'settled' && status !== 'to_settle'
}

/**
 * The calls that wait for an equal one before them in the same reply: so many equal answers that theirs would be a
 * repeat may be on their way. Once those are there, it is known whether it is one.
 */
export function findCallsAwaitingEqual(state: ExecutingState): ReadonlySet<Call> {
  const { calls, limits } = state
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  const waiting = new Set<Call>()
  const open = new Map<string, number>()
  for (const call of calls) {
    const { status, attempts } = call
    // A call after a change does not repeat one from before it.
    if (mayChangeAnswers(call)) break
    if (status === 'settled' || !isComparable(call)) continue
    const key = toCallKey(call) ?? ''
    const before = open.get(key) ?? 0
    open.set(key, before + 1)
    const mayWait = before > 0 && attempts === 0 && (status === 'ready' || status === 'to_ask')
    if (mayWait && before + findRepeatedAnswers(state, call).length >= max) waiting.add(call)
  }
  return waiting
}

/**
 * Returns the calls to start now, of those that `isStartable` accepts. Reads start together, up to the limit
 * `maxConcurrency` of the run; writes start one at a time, in request order. The `maxConcurrency` of a tool and the
 * `serial` key of a call hold for both.
 */
export function chooseCallsToStart(
  { calls, limits }: ExecutingState,
  isStartable: (call: Call) => boolean,
): readonly Call[] {
  const { counts, runningReads } = summarizeCalls(calls)
  if (counts.ready + counts.in_doubt + counts.to_retry === 0) return []
  let room = (limits.maxConcurrency ?? defaultLimits.maxConcurrency) - runningReads
  let isWriteOpen = false
  const turns = new ToolTurns(calls)
  const chosen: Call[] = []
  for (const call of calls) {
    const isNext = turns.isNext(call)
    if (call.effect === 'read') {
      if (room <= 0 || !isNext || !isStartable(call)) continue
      turns.start(call)
      chosen.push(call)
      room--
    } else if (!isWriteOpen && call.status !== 'settled') {
      isWriteOpen = true
      if (isNext && isStartable(call)) chosen.push(call)
    }
  }
  return chosen
}

/**
 * Whose turn it is among the calls of a reply, asked for one after the other in the order of the requests: of those that
 * share a `serial` key the first that has no result, of those of one tool as many as it runs at the same time.
 */
class ToolTurns {
  /** Keys of earlier calls that have no result yet. */
  readonly #taken = new Set<string>()
  /** Calls at work, by tool. */
  readonly #atWork = new Map<string, number>()

  constructor(calls: readonly Call[]) {
    for (const call of calls) if (call.status === 'started') this.start(call)
  }

  /** Returns whether a call need not wait for one before it. */
  isNext({ name, serial, maxConcurrency = Infinity, status }: Call): boolean {
    if (status === 'settled') return false
    const isFree = serial === undefined || !this.#taken.has(serial)
    if (serial !== undefined) this.#taken.add(serial)
    return isFree && (this.#atWork.get(name) ?? 0) < maxConcurrency
  }

  /** A call of the tool is at work, or is about to be. */
  start({ name, maxConcurrency }: Pick<Call, 'name' | 'maxConcurrency'>): void {
    if (maxConcurrency !== undefined) this.#atWork.set(name, (this.#atWork.get(name) ?? 0) + 1)
  }
}
