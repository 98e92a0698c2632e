import {
  type Amounts,
  defaultLimits,
  type Grant,
  type GrantField,
  grantFields,
  type LimitName,
  limitOfField,
  type Limits,
} from '../events/limits.ts'
import { type MaxWebSearches, type Price, type Rates, ratesFor, searchesCost } from '../events/usage.ts'
import {
  findCallsAwaitingEqual,
  findCallsBehindChange,
  getDeadline,
  getGraceEnd,
  computeLeft,
  type LimitFinding,
  mayRepeat,
  meetLimit,
  getOnLimit,
  findRepeatedAnswers,
  findRepeatLimit,
  sumSpent,
  findTimeLimit,
  getWorkDeadline,
} from './budget.ts'
import { type Call, type ExecutingState, type RunState, withToolSpending } from './state.ts'
import { getCurrentModel, getPrice, summaryOf, textContent } from './calls.ts'
import type { ChildTotals, Fact, FactOf, ToolSpending } from '../events/event.ts'
import { childRunIdOf } from '../values/ids.ts'
import { momentAfter } from '../events/event-parts.ts'
import type { Outcome } from '../events/content.ts'
import { getOwn, omitUndefined } from '../values/json.ts'
import { type Action, recordFacts } from './rules.ts'
import { longestStreak } from './history.ts'

/** Fewer output tokens than this are not worth a model call. */
const OUTPUT_TOKENS_MIN = 16
/** Output tokens that are held back for the call that writes the answer at a limit. */
const FINALIZING_OUTPUT_TOKENS = 256

/** A model call that is to be granted. */
export interface PlannedCall {
  /** Of the model that is called; `undefined` where it is unknown. */
  readonly price: Price | undefined
  /** How many web searches its provider may run within it; none where absent. */
  readonly maxWebSearches?: MaxWebSearches
  /** About how many input tokens its request has. */
  readonly inputTokens: number
  /** True if it begins a turn. */
  readonly startsTurn: boolean
  /** The most output tokens that it may have by its own settings. */
  readonly maxOutputTokens?: number | undefined
  /** True if it is the call that writes the answer at a limit. */
  readonly finalizing: boolean
  /** True if enough has to be left after it for a call that writes the answer. */
  readonly keepsFinalizing: boolean
}

/**
 * Checks every limit before a model call: what the call may use, or the limit that prevents it, because the time of the
 * run is up or too little is left.
 */
export function grantModelCall(state: RunState, now: number, call: PlannedCall): Grant | LimitFinding {
  const timeUp = enforce.maxDurationMs(state, now, call.finalizing)
  if (timeUp) return timeUp
  const left = computeLeft(state)
  const needed = computeReserve(call)
  const toFinding = (field: GrantField): LimitFinding => {
    const limit = limitOfField[field]
    const found = { limit, max: state.limits[limit] ?? 0, used: sumSpent(state)[field] }
    return needed[field] ? { ...found, held: needed[field] } : found
  }
  if (left.turns < (call.startsTurn ? 1 : 0) + needed.turns) return toFinding('turns')
  const outputs = computeOutputAllowed(call, left)
  const [field, outputTokens] = outputs.reduce((least, next) => (next[1] < least[1] ? next : least))
  if (outputTokens < OUTPUT_TOKENS_MIN) return toFinding(field)
  return toGrant(call, Math.min(Math.floor(outputTokens), call.maxOutputTokens ?? Infinity))
}

function findTimeUp(state: RunState, now: number, finalizing: boolean): LimitFinding | undefined {
  const deadline = finalizing ? getDeadline(state) : getWorkDeadline(state)
  return now < deadline ? undefined : findTimeLimit(state, now)
}

/**
 * Where each limit is enforced. Amounts (`limitOfField`) bound the grants of model calls and child runs, and the starts of
 * tool calls; a limit of any other kind has its function here, so that one without enforcement does not compile.
 */
const enforce = {
  maxDurationMs: findTimeUp,
  maxRepeats: meetRepeatLimit,
  /** The words for the model, if the call at this place of the reply is one too many. */
  maxToolCallsPerTurn: ({ maxToolCallsPerTurn: max = Infinity }: Limits, place: number): string | undefined =>
    place < max
      ? undefined
      : `At most ${max} tool calls are run for one reply. Nothing was run; ask for this call again.`,
  /** The words for the model, if the tool has been called often enough. */
  maxCallsByTool({ maxCallsByTool = {} }: Limits, tool: string, taken: number): string | undefined {
    const max = getOwn(maxCallsByTool, tool) ?? Infinity
    if (taken < max) return undefined
    return `${tool} may be called ${max} times in a run, and that often it was. Nothing was run; go on without it.`
  },
  maxConcurrency: ({ maxConcurrency = defaultLimits.maxConcurrency }: Limits): number => maxConcurrency,
  maxApprovalMs: getApprovalExpiry,
  graceMs: getGraceEnd,
} satisfies {
  readonly [L in Exclude<keyof Limits, (typeof limitOfField)[GrantField] | 'onLimit'>]: (
    ...given: never[]
  ) => unknown
}

/** When an approval that is asked for now counts as denied. */
export function getApprovalExpiry({ maxApprovalMs }: Limits, now: number): number | undefined {
  return maxApprovalMs === undefined ? undefined : momentAfter(now, maxApprovalMs)
}

/**
 * The grant of a call. Searches without a bound leave its money without one, which is legal only where no limit counts
 * money.
 */
function toGrant(call: PlannedCall, allowed: number): Grant {
  const { price, inputTokens, startsTurn, maxWebSearches = 0 } = call
  const outputTokens = allowed === Infinity ? undefined : allowed
  // Output that costs nothing needs no bound, and the input is paid for all the same.
  const isFree = price !== undefined && ratesFor(price, inputTokens).outputUsd === 0
  const isBounded = price !== undefined && (outputTokens !== undefined || isFree)
  const costUsd = isBounded
    ? computeCallCost(price, inputTokens, outputTokens ?? 0) + searchesCost(price, maxWebSearches)
    : Infinity
  return {
    turns: startsTurn ? 1 : 0,
    inputTokens,
    ...omitUndefined({ outputTokens, costUsd: costUsd === Infinity ? undefined : costUsd }),
    ...(typeof maxWebSearches === 'number' && maxWebSearches > 0 && { webSearches: maxWebSearches }),
  }
}

/** The amounts that a run keeps from its child runs for its next model call and the finalizing call. */
export function computeFinalizingNeeds(state: RunState): { readonly [F in GrantField]?: number } {
  if (getOnLimit(state.limits) !== 'finalize') return {}
  const price = getPrice(state, getCurrentModel(state))
  return computeReserve({ keepsFinalizing: true, inputTokens: state.contextTokens, price })
}

/** The reserve for the finalizing call: the last turn of a limit is the one that writes the answer. */
function computeReserve({
  keepsFinalizing,
  inputTokens,
  price,
}: Pick<PlannedCall, 'keepsFinalizing' | 'inputTokens' | 'price'>): { readonly turns: number } & {
  readonly [F in GrantField]?: number
} {
  if (!keepsFinalizing) return { turns: 0 }
  // The finalizing call is shown the same again, beside the output of this one.
  return {
    turns: 1,
    tokens: inputTokens + FINALIZING_OUTPUT_TOKENS,
    inputTokens,
    outputTokens: FINALIZING_OUTPUT_TOKENS,
    ...(price && { costUsd: computeCallCost(price, inputTokens, FINALIZING_OUTPUT_TOKENS) }),
  }
}

/** The output tokens that each limit leaves, when the input and the finalizing call have been taken off. */
function computeOutputAllowed(call: PlannedCall, left: Amounts): readonly (readonly [GrantField, number])[] {
  const { inputTokens: input, keepsFinalizing } = call
  if (!keepsFinalizing) {
    return [
      ['tokens', left.tokens - input],
      ['outputTokens', left.outputTokens],
      ['costUsd', computeAffordableOutput(call, left.costUsd)],
      ['inputTokens', input > left.inputTokens ? 0 : Infinity],
    ]
  }
  // What this call puts out, the finalizing call takes in: each token counts twice.
  return [
    ['tokens', (left.tokens - 2 * input - FINALIZING_OUTPUT_TOKENS) / 2],
    ['outputTokens', left.outputTokens - FINALIZING_OUTPUT_TOKENS],
    ['costUsd', computeAffordableOutput(call, left.costUsd)],
    ['inputTokens', left.inputTokens - 2 * input],
  ]
}

/**
 * Output tokens that the money left pays for. Without a price, or with priced searches that nothing bounds, no call is
 * affordable: no grant could hold the limit.
 */
function computeAffordableOutput(call: PlannedCall, leftUsd: number): number {
  const { price, inputTokens, keepsFinalizing, maxWebSearches = 0 } = call
  if (leftUsd === Infinity) return Infinity
  if (price === undefined) return 0
  const own = leftUsd - computeCallCost(price, inputTokens, 0) - searchesCost(price, maxWebSearches)
  const finalizing = ratesFor(price, 2 * inputTokens)
  const afterInput = keepsFinalizing
    ? own - computeCallCost(price, inputTokens, FINALIZING_OUTPUT_TOKENS)
    : own
  if (afterInput <= 0) return 0
  const perToken =
    (ratesFor(price, inputTokens).outputUsd + (keepsFinalizing ? getDearestInput(finalizing) : 0)) / 1_000_000
  return perToken === 0 ? Infinity : afterInput / perToken
}

/** The most that a call can cost: all of its input may be written to the provider's cache. */
function computeCallCost(price: Price, inputTokens: number, outputTokens: number): number {
  const rates = ratesFor(price, inputTokens)
  return (inputTokens * getDearestInput(rates) + outputTokens * rates.outputUsd) / 1_000_000
}

function getDearestInput(rates: Rates): number {
  const { inputUsd, cacheWriteUsd = inputUsd, cacheWriteLongUsd = cacheWriteUsd } = rates
  return Math.max(inputUsd, cacheWriteUsd, cacheWriteLongUsd)
}

/** A child is given up before its parent gives its call up. */
const GRACE_SHARE = 0.75

/** The least grant with which a child run is worth a start. */
const leastUseful: { readonly [F in GrantField]: number } = {
  turns: 1,
  toolCalls: 0,
  tokens: 32,
  inputTokens: 16,
  outputTokens: 16,
  costUsd: Number.MIN_VALUE,
}

/**
 * The grant of a call's child run: an even share of what the run has left, beside the needs of its own calls of this
 * turn and its next model call need. Children of this turn that have no grant yet get shares of the same size; what one
 * does not use is left for those that start after it. Or the limit that leaves too little.
 */
export function grantChild(state: ExecutingState, now: number): Grant | { readonly limit: LimitName } {
  const left = computeLeft(state)
  const unstarted = listUnstarted(state)
  // The parent's own needs: a turn that reads the results, a start for each waiting call, and its finalizing call.
  const kept: { readonly [F in GrantField]?: number } = {
    ...computeFinalizingNeeds(state),
    turns: 1,
    toolCalls: unstarted.length,
  }
  const shares = Math.max(1, unstarted.filter(({ child, grant }) => child && !grant).length)
  const granted: { [F in GrantField]?: number } = {}
  for (const field of grantFields) {
    if (left[field] === Infinity) continue
    const share = Math.max(0, left[field] - (kept[field] ?? 0)) / shares
    granted[field] = field === 'costUsd' ? share : Math.floor(share)
    if (granted[field] < leastUseful[field]) return { limit: limitOfField[field] }
  }
  const deadline = getWorkDeadline(state)
  if (deadline === Infinity) return granted
  return deadline > now ? { ...granted, durationMs: deadline - now } : { limit: 'maxDurationMs' }
}

/**
 * The model usage left to a running call, cut as a child run's grant is; or the limit that leaves too little. `pending`
 * are the calls of models that its tool has reported and the state does not have yet.
 */
export function computeLeftForCall(
  state: ExecutingState,
  pending: readonly ToolSpending[],
  now: number,
): Grant | { readonly limit: LimitName } {
  return grantChild({ ...state, totals: pending.reduce(withToolSpending, state.totals) }, now)
}

/** The limits of a child run: its agent's own, and never more than what it is granted. */
export function limitChild(grant: Grant, own: Limits, parent: Limits): Limits {
  const within: { [L in LimitName]?: number } = {}
  for (const field of grantFields) {
    const granted = grant[field]
    const limit = limitOfField[field]
    if (granted !== undefined) within[limit] = Math.min(own[limit] ?? Infinity, granted)
  }
  if (grant.durationMs !== undefined) {
    within.maxDurationMs = Math.min(own.maxDurationMs ?? Infinity, grant.durationMs)
  }
  const graceMs = Math.floor((parent.graceMs ?? defaultLimits.graceMs) * GRACE_SHARE)
  return { ...own, ...within, graceMs: Math.min(own.graceMs ?? Infinity, graceMs) }
}

/**
 * The totals assumed for a child run that has not ended when its parent counts, or whose own could not be read in time:
 * all that it was granted, since it may use that yet, and no less than it is known to have used.
 */
export function assumeChildTotals(
  { runId }: Pick<ExecutingState, 'runId'>,
  { toolCallId, grant = {} }: Pick<Call, 'toolCallId' | 'grant'>,
  known?: ChildTotals,
): ChildTotals {
  const { tokens = 0, inputTokens, outputTokens } = grant
  const { turns = 0, toolCalls = 0, usage = {}, costUsd } = known ?? {}
  const grantedOutput = outputTokens ?? Math.max(0, tokens - (inputTokens ?? tokens))
  const output = Math.max(grantedOutput, usage.outputTokens ?? 0)
  const input = inputTokens ?? Math.max(0, tokens - output)
  const isPriced = grant.costUsd !== undefined || costUsd !== undefined
  return {
    runId: known?.runId ?? childRunIdOf(runId, toolCallId),
    turns: Math.max(grant.turns ?? 0, turns),
    toolCalls: Math.max(grant.toolCalls ?? 0, toolCalls),
    usage: { ...usage, inputTokens: Math.max(input, usage.inputTokens ?? 0), outputTokens: output },
    ...(isPriced && { costUsd: Math.max(grant.costUsd ?? 0, costUsd ?? 0) }),
    estimated: true,
  }
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
    content: textContent(outcome, text),
    ...(grant && state.phase === 'executing' && { child: assumeChildTotals(state, call) }),
  }
}

function isUnstarted({ attempts, status }: Call): boolean {
  return attempts === 0 && (status === 'ready' || status === 'to_ask' || status === 'awaiting_approval')
}

/** The calls that were not started yet and may be. */
function listUnstarted({ calls }: ExecutingState): readonly Call[] {
  const { ready, to_ask, awaiting_approval } = summaryOf(calls).counts
  return ready + to_ask + awaiting_approval === 0 ? [] : calls.filter(isUnstarted)
}

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
  return refuseCalls(state, past) ?? (metLimit === undefined ? enforce.maxRepeats(state) : undefined)
}

function meetRepeatLimit(state: ExecutingState): Action | undefined {
  if (!mayRepeat(state)) return undefined
  const behind = findCallsBehindChange(state)
  const [repeats] = listUnstarted(state)
    .filter((call) => !behind.has(call))
    .flatMap((call) => findRepeatLimit(state, call) ?? [])
  return repeats && meetLimit(state, repeats)
}

function refuseCalls(state: ExecutingState, calls: readonly Call[]): Action | undefined {
  return recordFacts(
    'settle_calls',
    calls.map((call) => toResultFact(state, call, 'limit_reached')),
  )
}

/** The calls that wait for a start which `maxToolCalls` does not leave them. */
function listCallsPastLimit(state: ExecutingState): readonly Call[] {
  const left = computeLeft(state).toolCalls
  const unstarted = listUnstarted(state)
  if (unstarted.length <= left) return []
  // What a child run does not use of its grant is left for the calls that wait.
  if (state.calls.some(({ grant, status }) => grant && status !== 'settled')) return []
  // A call that is served a recorded answer takes no start, nor does one that may yet be.
  const waiting = findCallsAwaitingEqual(state)
  const served = new Set(serveRepeats(state).map(({ toolCallId }) => toolCallId))
  return unstarted.filter((call) => !waiting.has(call) && !served.has(call.toolCallId)).slice(left)
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
    const text =
      enforce.maxToolCallsPerTurn(state.limits, place) ?? enforce.maxCallsByTool(state.limits, name, taken)
    return text === undefined ? [] : [toResultFact(state, call, 'limit_reached', text)]
  })
}

/**
 * No progress: a read that has given the same answer again and again, while nothing happened, is not run; its recorded
 * answer is served.
 */
export function serveRepeats(state: ExecutingState): readonly FactOf<'tool_result'>[] {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  if (longestStreak(state.callLog) < max) return []
  const behind = findCallsBehindChange(state)
  return listUnstarted(state).flatMap((call) => {
    if (call.status === 'awaiting_approval' || behind.has(call)) return []
    const [last, ...others] = findRepeatedAnswers(state, call)
    if (last === undefined || others.length + 1 < max) return []
    const note = `This call was made ${others.length + 1} times with the same answer, and nothing has changed since, so it was not run again. Do something else, or answer with what you know. The answer was:`
    const content = [...textContent('repeated', note), ...last.result.content]
    return [{ ...toResultFact(state, call, 'repeated'), content }]
  })
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
  const { counts, runningReads } = summaryOf(calls)
  if (counts.ready + counts.in_doubt + counts.to_retry === 0) return []
  let room = enforce.maxConcurrency(limits) - runningReads
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
  /** Keys of which an earlier call has no result. */
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
