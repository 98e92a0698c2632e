import type { RecordingPart } from '../events/agent-definition.ts'
import type { Outcome } from '../events/content.ts'
import { addMs } from '../events/event-parts.ts'
import type { ChildTotals, Fact, FactOf, ToolSpending } from '../events/event.ts'
import {
  type Amounts,
  defaultLimits,
  type Grant,
  type GrantField,
  grantFields,
  type LimitName,
  limitOfField,
  type Limits,
  type OnLimit,
} from '../events/limits.ts'
import {
  computeCost,
  takeLargerUsage,
  type MaxWebSearches,
  type Price,
  type Rates,
  findRates,
  computeSearchesCost,
  type Usage,
  type UsageField,
} from '../events/usage.ts'
import type { FailureClass } from '../values/errors.ts'
import { deriveChildRunId } from '../values/ids.ts'
import { getOwn, omitUndefined } from '../values/json.ts'
import { getCurrentModel, getPrice, summarizeCalls, toTextContent, toCallKey } from './calls.ts'
import { type LoggedCall, getLongestStreak, listSameAnswers } from './history.ts'
import { type Action, recordFacts } from './rules.ts'
import {
  type Call,
  type ExecutingState,
  type RunState,
  type StreamingState,
  withToolSpending,
} from './state.ts'

/** Tolerance when an amount is compared with a limit: sums of dollars are rounded. */
const ROUNDING = 1e-9

const nothingSpent: Amounts = {
  turns: 0,
  toolCalls: 0,
  tokens: 0,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
}

/** The amounts that the run and its ended child runs have spent. */
export function sumSpent({ totals }: RunState): Amounts {
  const { turns, toolCalls, children, usage, costUsd = 0 } = totals
  return {
    turns: turns + children.turns,
    toolCalls: toolCalls + children.toolCalls,
    ...toTokenAmounts(usage),
    costUsd,
  }
}

function toTokenAmounts({
  inputTokens = 0,
  outputTokens = 0,
}: Usage): Omit<Amounts, 'turns' | 'toolCalls' | 'costUsd'> {
  return { tokens: inputTokens + outputTokens, inputTokens, outputTokens }
}

/** The amounts granted and not yet spent, of the model call, the summary and the child runs under way. */
function sumGranted(state: RunState): Amounts {
  const { compacting } = state
  const amounts = listChildCalls(state).map(({ grant = {} }) => toAmounts(grant))
  if (state.phase === 'streaming' && !state.attempt.failed) {
    amounts.push(computeUnused(state.attempt.grant, state))
  }
  if (compacting) amounts.push(toAmounts(compacting.grant))
  return mapFields((field) => amounts.reduce((sum, each) => sum + each[field], 0))
}

/** The calls whose child runs may still spend. */
function listChildCalls(state: RunState): readonly Call[] {
  if (state.phase !== 'executing' || summarizeCalls(state.calls).ofChildren === 0) return []
  return state.calls.filter(
    ({ child, grant, status }) => child !== undefined && grant !== undefined && status !== 'settled',
  )
}

/** The unused part of a model call's grant. Its turn is spent when it starts. */
function computeUnused(grant: Grant, { totals }: RunState): Amounts {
  const { settledCostUsd = 0, costUsd = 0 } = totals
  const used = { ...nothingSpent, ...toTokenAmounts(totals.latestUsage), costUsd: costUsd - settledCostUsd }
  const granted = { ...toAmounts(grant), turns: 0 }
  return mapFields((field) => Math.max(0, granted[field] - used[field]))
}

/** A grant as amounts. What it does not bound counts as none: the run has no limit of that kind. */
function toAmounts(grant: Grant): Amounts {
  return mapFields((field) => getBound(grant, field) ?? 0)
}

/** How much of a field a grant allows; `undefined` if it does not bound it. */
function getBound(grant: Grant, field: GrantField): number | undefined {
  const { inputTokens, outputTokens } = grant
  if (field !== 'tokens' || grant.tokens !== undefined) return grant[field]
  return inputTokens === undefined || outputTokens === undefined ? undefined : inputTokens + outputTokens
}

/** The rest of each limit, neither spent nor granted. `Infinity` without such a limit; never below 0. */
export function computeLeft(state: RunState): Amounts {
  const spent = sumSpent(state)
  const granted = sumGranted(state)
  return mapFields((field) => {
    const max = state.limits[limitOfField[field]] ?? Infinity
    return Math.max(0, max - spent[field] - granted[field])
  })
}

/**
 * Law 9: returns why a grant may not be given, if it may not. A child run takes turns and tool calls, so its grant has to
 * bound them; a model call takes none beside its own turn.
 */
export function findGrantFault(
  state: RunState,
  grant: Grant,
  spender: 'model_call' | 'child_run',
): string | undefined {
  const left = computeLeft(state)
  for (const field of grantFields) {
    if (left[field] === Infinity) continue
    const limit = limitOfField[field]
    const amount = getBound(grant, field)
    const max = state.limits[limit] ?? Infinity
    if (amount === undefined) {
      if (spender === 'model_call' && (field === 'turns' || field === 'toolCalls')) continue
      return `the grant does not bound what ${limit} limits to ${max}`
    }
    if (amount > left[field] + ROUNDING * Math.max(1, max)) {
      return `${amount} of ${limit} (${max}) are granted, and ${left[field]} are left`
    }
  }
  return undefined
}

function mapFields(amount: (field: GrantField) => number): Amounts {
  return {
    turns: amount('turns'),
    toolCalls: amount('toolCalls'),
    tokens: amount('tokens'),
    inputTokens: amount('inputTokens'),
    outputTokens: amount('outputTokens'),
    costUsd: amount('costUsd'),
  }
}

/** The most time that is held back for the call that writes the answer when a run's time is up. */
const MAX_CLOSING_MS = 30_000
/** The part of a run's time that is held back for it, at most. */
const CLOSING_SHARE = 1 / 4

/** The policy at a limit. */
export function getOnLimit({ onLimit }: Limits): OnLimit {
  return onLimit ?? 'finalize'
}

/** How long a run has been at work, in milliseconds: waiting for a person or for a process does not count. */
export function measureActiveMs(state: RunState, now: number): number {
  return now - state.startedAt - state.waitedMs
}

/** When the run's time is up, in milliseconds since 1970 UTC, if it works on without a pause; `Infinity` without a limit. */
export function getDeadline(state: RunState): number {
  return Math.min(state.deadlineAt ?? Infinity, getWorkEnd(state))
}

function getWorkEnd({ limits, startedAt, waitedMs }: RunState): number {
  return startedAt + waitedMs + (limits.maxDurationMs ?? Infinity)
}

/** Returns whether it is the moment that the run was given which ends its time, and not the limit on its work. */
function isBoundByDeadline(state: RunState): boolean {
  return state.deadlineAt !== undefined && state.deadlineAt <= getWorkEnd(state)
}

/** The time that a run has in all, in milliseconds. */
function getDuration(state: RunState): number | undefined {
  if (!isBoundByDeadline(state)) return state.limits.maxDurationMs
  return Math.max(0, (state.deadlineAt ?? 0) - state.startedAt)
}

/** When the run has to stop its work, so that time is left to write the answer. */
export function getWorkDeadline(state: RunState): number {
  return getDeadline(state) - getFinalizingMs(state)
}

/** The time that is held back for the finalizing call, in milliseconds. */
export function getFinalizingMs(state: RunState): number {
  const durationMs = getDuration(state)
  if (durationMs === undefined || getOnLimit(state.limits) !== 'finalize') return 0
  return Math.min(MAX_CLOSING_MS, Math.floor(durationMs * CLOSING_SHARE))
}

/**
 * Returns when the runtime gives up tools that were asked to stop: after the grace time, and never past the run's
 * deadline. Every tool gets the request to stop first, however short the time: a child run without it would continue.
 */
export function getGraceEnd(state: RunState, askedAt: number): number {
  const decidedAt = askedAt + 1
  const graceEnd = Math.max(decidedAt, askedAt + (state.limits.graceMs ?? defaultLimits.graceMs))
  if (state.cancel) return graceEnd
  return Math.min(graceEnd, Math.max(decidedAt, getDeadline(state)))
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
  const { calls, callLog, limits } = state
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  const waiting = new Set<Call>()
  // No call has so many equal ones before it, answers in a row included.
  const { mostEqual } = summarizeCalls(calls)
  if (mostEqual <= 1 || mostEqual - 1 + getLongestStreak(callLog) < max) return waiting
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

/** A limit that prevents a call, and how much of it is used. */
export interface LimitFinding {
  readonly limit: LimitName
  readonly max: number
  readonly used: number
  /** Held back for the call that writes the answer at a limit. */
  readonly held?: number
}

/** The limit on time, as it is met. */
export function findTimeLimit(state: RunState, now: number): LimitFinding {
  const held = getFinalizingMs(state)
  const max = getDuration(state) ?? 0
  const used = isBoundByDeadline(state) ? now - state.startedAt : measureActiveMs(state, now)
  return { limit: 'maxDurationMs', max, used, ...(held > 0 && { held }) }
}

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, finding: LimitFinding): Action {
  const given = getOnLimit(state.limits)
  // No raised limit brings a moment back.
  const isPast = finding.limit === 'maxDurationMs' && isBoundByDeadline(state)
  const policy = isPast && given === 'ask' ? 'stop' : given
  return { kind: 'meet_limit', facts: [{ type: 'limit_reached', turn: state.turn, ...finding, policy }] }
}

/** A report below this share of what was counted here is not believed: no tokenizer packs text so densely. */
const BELIEVED_SHARE = 1 / 4
/** The same for input, where more is estimated: documents, images, tools. */
const BELIEVED_INPUT_SHARE = 1 / 16

/** Failures after which a provider may have billed a call although nothing of its reply arrived. */
const maybeBilled = new Set<FailureClass | 'cancelled'>(['timeout', 'truncated', 'interrupted', 'cancelled'])

/** Returns whether a limit of the run counts tokens or money. */
export function countsTokens({ limits }: RunState): boolean {
  const { maxTotalTokens, maxTotalInputTokens, maxTotalOutputTokens, maxCostUsd } = limits
  return (maxTotalTokens ?? maxTotalInputTokens ?? maxTotalOutputTokens ?? maxCostUsd) !== undefined
}

/**
 * Settles the grant of an attempt that ends here if its provider's report cannot: the larger of the report and
 * the estimate, marked as estimated. Empty where the report is believable, where no limit depends on it, or where the
 * call failed before it could be billed. `cutBy` says what cut the reply off; absent for a whole reply.
 */
export function settleUsage(
  state: StreamingState,
  cutBy?: FailureClass | 'cancelled',
): readonly FactOf<'usage_updated'>[] {
  const { attempt, totals, limits } = state
  const came = attempt.streamedTokens > 0 || Object.keys(totals.latestUsage).length > 0
  const mayBeBilled = came || cutBy === undefined || maybeBilled.has(cutBy)
  if (!countsTokens(state) || !mayBeBilled) return []
  const price = getPrice(state, attempt.model)
  const { usage: believed, estimated } = replaceUnbelievable(totals.latestUsage, {
    inputTokens: attempt.grant.inputTokens ?? state.contextTokens,
    outputTokens: Math.ceil(attempt.streamedTokens),
  })
  // A reply that was cut off does not say how many searches it took: where money is limited, all that were granted count.
  const { webSearches = 0 } = attempt.grant
  const isPriced = limits.maxCostUsd !== undefined && (price?.webSearchUsd ?? 0) > 0
  const countsSearches = cutBy !== undefined && isPriced && webSearches > (believed.webSearches ?? 0)
  const usage = countsSearches ? { ...believed, webSearches } : believed
  const fields = countsSearches ? [...estimated, 'webSearches' as const] : estimated
  if (fields.length === 0) return []
  const here = { type: 'usage_updated' as const, turn: state.turn, attempt: attempt.number }
  return [{ ...here, usage, ...toCostFields(price, usage), estimated: fields }]
}

/** The cost of some usage at a price, as fields of an event; none if the price is unknown. */
export function toCostFields(
  price: Price | undefined,
  usage: Usage,
): { readonly costUsd?: number; readonly price?: Price } {
  return price === undefined ? {} : { costUsd: computeCost(price, usage), price }
}

/** A report in which the estimate replaces each number that is missing or implausibly small. */
export function replaceUnbelievable(
  report: Usage,
  estimate: Pick<Usage, 'inputTokens' | 'outputTokens'>,
): { readonly usage: Usage; readonly estimated: readonly UsageField[] } {
  const shares = { inputTokens: BELIEVED_INPUT_SHARE, outputTokens: BELIEVED_SHARE }
  const estimated = (['inputTokens', 'outputTokens'] as const).filter((field) => {
    const reported = report[field]
    return reported === undefined || reported < (estimate[field] ?? 0) * shares[field]
  })
  const taken = Object.fromEntries(estimated.map((field) => [field, estimate[field] ?? 0]))
  return { usage: takeLargerUsage(report, taken), estimated }
}

/** How the tokens of a reply are counted if its provider does not report them. */
const counted: ReadonlySet<RecordingPart> = new Set(['textDeltas', 'toolInputDeltas', 'reasoning'])

/**
 * Returns whether a run records these events: as its own policy says, else as its active agent's does. The deltas of a reply are recorded
 * all the same where a limit counts tokens: a reply that breaks off is charged by what came of it (law 9).
 */
export function isRecorded(state: RunState, part: RecordingPart): boolean {
  if (counted.has(part) && countsTokens(state)) return true
  return state.recording?.[part] ?? state.definition.policy?.recording?.[part] ?? true
}

/** Fewer output tokens than this are not worth a model call. */
const OUTPUT_TOKENS_MIN = 16
/** Output tokens that are held back for the call that writes the answer at a limit. */
const FINALIZING_OUTPUT_TOKENS = 256

/** A model call that is to be granted. */
export interface PlannedCall {
  /** Of the model that is called; `undefined` if it is unknown. */
  readonly price: Price | undefined
  /** How many web searches its provider may run within it; none if absent. */
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

/**
 * Where each limit is enforced. Amounts (`limitOfField`) bound the grants of model calls and child runs, and the starts of
 * tool calls; a limit of any other kind has its function here, so that one without enforcement does not compile.
 */
const enforce = {
  maxDurationMs(state: RunState, now: number, finalizing: boolean): LimitFinding | undefined {
    const deadline = finalizing ? getDeadline(state) : getWorkDeadline(state)
    return now < deadline ? undefined : findTimeLimit(state, now)
  },
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
  return maxApprovalMs === undefined ? undefined : addMs(now, maxApprovalMs)
}

/**
 * The grant of a call. Searches without a bound leave its money without one, which is legal only where no limit counts
 * money.
 */
function toGrant(call: PlannedCall, allowed: number): Grant {
  const { price, inputTokens, startsTurn, maxWebSearches = 0 } = call
  const outputTokens = allowed === Infinity ? undefined : allowed
  // Output that costs nothing needs no bound, and the input is paid for all the same.
  const isFree = price !== undefined && findRates(price, inputTokens).outputUsd === 0
  const isBounded = price !== undefined && (outputTokens !== undefined || isFree)
  const costUsd = isBounded
    ? computeCallCost(price, inputTokens, outputTokens ?? 0) + computeSearchesCost(price, maxWebSearches)
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
  // The output of this call is input of the finalizing call: each token counts twice.
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
  const own = leftUsd - computeCallCost(price, inputTokens, 0) - computeSearchesCost(price, maxWebSearches)
  const finalizing = findRates(price, 2 * inputTokens)
  const afterInput = keepsFinalizing
    ? own - computeCallCost(price, inputTokens, FINALIZING_OUTPUT_TOKENS)
    : own
  if (afterInput <= 0) return 0
  const perToken =
    (findRates(price, inputTokens).outputUsd + (keepsFinalizing ? getDearestInput(finalizing) : 0)) /
    1_000_000
  return perToken === 0 ? Infinity : afterInput / perToken
}

/** The most that a call can cost: all of its input may be written to the provider's cache. */
function computeCallCost(price: Price, inputTokens: number, outputTokens: number): number {
  const rates = findRates(price, inputTokens)
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
    runId: known?.runId ?? deriveChildRunId(runId, toolCallId),
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
    content: toTextContent(outcome, text),
    ...(grant && state.phase === 'executing' && { child: assumeChildTotals(state, call) }),
  }
}

function isUnstarted({ attempts, status }: Call): boolean {
  return attempts === 0 && (status === 'ready' || status === 'to_ask' || status === 'awaiting_approval')
}

/** The calls that were not started yet and may be. */
function listUnstarted({ calls }: ExecutingState): readonly Call[] {
  const { ready, to_ask, awaiting_approval } = summarizeCalls(calls).counts
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
  // Calls that wait may get the unused part of a child run's grant.
  if (state.calls.some(({ grant, status }) => grant && status !== 'settled')) return []
  // A call that gets a recorded answer uses no start, and one that may still get it does not either.
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
  if (getLongestStreak(state.callLog) < max) return []
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
