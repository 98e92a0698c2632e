import { type RecordingPart } from '../events/agent-definition.ts'
import { type ChildTotals, type FactOf, type ToolSpending } from '../events/event.ts'
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
import { type FailureClass } from '../values/errors.ts'
import { deriveChildRunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { getCurrentModel, getPrice, summarizeCalls, listUnstarted } from './calls.ts'
import { type LimitFinding, getOnLimit, getDeadline, findTimeLimit, getWorkDeadline } from './limits.ts'
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

/** Fewer output tokens than this are not worth a model call. */
const OUTPUT_TOKENS_MIN = 16
/** Output tokens that are held back for the call that writes the answer at a limit. */
const FINALIZING_OUTPUT_TOKENS = 256

export interface PlannedCall {
  /** Of the model that is called; `undefined` if it is unknown. */
  readonly price: Price | undefined
  /** How many web searches its provider may run within it; none if absent. */
  readonly maxWebSearches?: MaxWebSearches
  /** About how many input tokens its request has. */
  readonly inputTokens: number
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
  const deadline = call.finalizing ? getDeadline(state) : getWorkDeadline(state)
  if (now >= deadline) return findTimeLimit(state, now)
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
export function grantChild(state: RunState, now: number): Grant | { readonly limit: LimitName } {
  const left = computeLeft(state)
  const unstarted = state.phase === 'executing' ? listUnstarted(state) : []
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
  state: RunState,
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

/** A report below this share of what was counted here is not believed: no tokenizer packs text so densely. */
const BELIEVED_SHARE = 1 / 4
/** The same for input, where more is estimated: documents, images, tools. */
const BELIEVED_INPUT_SHARE = 1 / 16

/** Failures after which a provider may have billed a call although nothing of its reply arrived. */
const maybeBilled = new Set<FailureClass | 'cancelled'>(['timeout', 'truncated', 'interrupted', 'cancelled'])

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
