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
import { costOf, largerUsage, type Price, type Usage, type UsageField } from '../events/usage.ts'
import type { Call, ExecutingState, RunState, StreamingState } from './state.ts'
import { toCallKey, getPrice, summaryOf } from './calls.ts'
import { type LoggedCall, longestStreak, sameAnswers } from './history.ts'
import { getOwn } from '../values/json.ts'
import type { Action } from './rules.ts'
import type { FactOf } from '../events/event.ts'
import type { FailureClass } from '../values/errors.ts'
import type { RecordingPart } from '../events/agent-definition.ts'

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
  if (state.phase !== 'executing' || summaryOf(state.calls).ofChildren === 0) return []
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

/** How much of a field a grant allows; `undefined` where it does not bound it. */
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
 * Law 9: why a grant may not be given, where it may not. A child run takes turns and tool calls, so its grant has to
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
  return sameAnswers(callLog, { name, inputDigest }, standstill.from)
}

function isComparable({ effect, repeats }: Call): boolean {
  return effect === 'read' && repeats === undefined
}

/** The calls that stand in a reply behind one that may still change what they answer: they run, whatever was said before. */
export function findCallsBehindChange({ calls }: ExecutingState): ReadonlySet<Call> {
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
  const { mostEqual } = summaryOf(calls)
  if (mostEqual <= 1 || mostEqual - 1 + longestStreak(callLog) < max) return waiting
  const open = new Map<string, number>()
  for (const call of calls) {
    const { status, attempts } = call
    // What stands behind a change is not a repeat of what stands before it.
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

/** Returns whether a call may have met the limit on repeats: one that may not need not be looked for. */
export function mayRepeat({ limits, standstill, errorStreaks }: RunState): boolean {
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  return (
    standstill.served >= max || Object.values(errorStreaks).some(({ count }) => count >= getMaxErrors(max))
  )
}

/** How many equal errors of one tool in a row are a sign of a stuck model: the first one repeats nothing. */
function getMaxErrors(maxRepeats: number): number {
  return Math.max(2, maxRepeats)
}

/** The limit on repeats, where this call has met it. */
export function findRepeatLimit(state: RunState, call: Call): LimitFinding | undefined {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  const { served } = state.standstill
  if (served >= max && findRepeatedAnswers(state, call).length >= max)
    return { limit: 'maxRepeats', max, used: served }
  const errors = call.repeats !== undefined ? 0 : (getOwn(state.errorStreaks, call.name)?.count ?? 0)
  return errors >= getMaxErrors(max) ? { limit: 'maxRepeats', max, used: errors } : undefined
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
/** The same for input, of which more is estimated: documents, images, tools. */
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

/** The cost of some usage at a price, as fields of an event; none where the price is unknown. */
export function toCostFields(
  price: Price | undefined,
  usage: Usage,
): { readonly costUsd?: number; readonly price?: Price } {
  return price === undefined ? {} : { costUsd: costOf(price, usage), price }
}

/** A report, with the estimate in the place of each number that is missing or too small to be believed. */
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
  return { usage: largerUsage(report, taken), estimated }
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
