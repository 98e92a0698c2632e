import type { FinishReason } from '../vocabulary/event.ts'
import { defaultLimits, type LimitName } from '../vocabulary/limits.ts'
import { ownValue } from '../vocabulary/own-value.ts'
import { costOf, ratesFor, type Price } from '../vocabulary/price.ts'
import type { Action } from './action.ts'
import type { Call, RunState } from './state.ts'
import { currentPrice } from './state-views.ts'

/** A limit that stands in the way, and how much of it is used. */
export interface LimitFinding {
  readonly limit: LimitName
  readonly max: number
  readonly used: number
}

/** Fewer output tokens than this are not worth a model call. */
const OUTPUT_TOKENS_MIN = 16

/** The finish reason that names a limit. */
export const limitReasons: { readonly [L in LimitName]: FinishReason } = {
  turnsMax: 'turn_limit',
  toolCallsMax: 'tool_call_limit',
  toolCallsPerTurnMax: 'tool_call_limit',
  tokensMax: 'token_limit',
  inputTokensMax: 'token_limit',
  outputTokensMax: 'token_limit',
  costMaxUsd: 'cost_limit',
  durationMaxMs: 'time_limit',
  repeatsMax: 'repeat_limit',
}

/** What of each limit that forbids further model calls is used up at a time. */
function used(state: RunState, now: number): { readonly [L in LimitName]?: number } {
  const { turns, children, usage, costUsd = 0 } = state.totals
  const { inputTokens = 0, outputTokens = 0 } = usage
  return {
    // The turn of a further attempt is counted already, and may go on.
    ...(state.phase !== 'streaming' && { turnsMax: turns + children.turns }),
    tokensMax: inputTokens + outputTokens,
    inputTokensMax: inputTokens,
    outputTokensMax: outputTokens,
    costMaxUsd: costUsd,
    durationMaxMs: activeMs(state, now),
  }
}

/** Law 9: the limit that is used up, and so forbids another model call. */
export function usedUpLimit(state: RunState, now: number): LimitFinding | undefined {
  for (const [name, amount] of Object.entries(used(state, now)) as [LimitName, number][]) {
    const max = state.limits[name]
    if (max !== undefined && amount >= max) return { limit: name, max, used: amount }
  }
  return undefined
}

/** What a model call may use, or the limit that leaves it too little. Reserved before the call, settled after it. */
export function reserveCall(
  state: RunState,
  now: number,
  price: Price | undefined = currentPrice(state),
): LimitFinding | { readonly outputTokens: number } {
  const found = usedUpLimit(state, now)
  if (found) return found
  const [limit, outputTokens] = outputLeft(state, price).reduce((least, next) =>
    next[1] < least[1] ? next : least,
  )
  if (outputTokens >= OUTPUT_TOKENS_MIN) return { outputTokens: Math.floor(outputTokens) }
  return { limit, max: state.limits[limit] ?? 0, used: used(state, now)[limit] ?? 0 }
}

/** The output tokens that each limit leaves, when the input of the next request has been taken off. */
function outputLeft(state: RunState, price: Price | undefined): readonly (readonly [LimitName, number])[] {
  const { tokensMax = Infinity, inputTokensMax = Infinity, outputTokensMax = Infinity } = state.limits
  const { costMaxUsd = Infinity } = state.limits
  const { inputTokens = 0, outputTokens = 0 } = state.totals.usage
  const input = inputTokens + state.contextTokens
  return [
    ['tokensMax', tokensMax - input - outputTokens],
    ['outputTokensMax', outputTokensMax - outputTokens],
    ['costMaxUsd', affordableTokens(state, costMaxUsd - (state.totals.costUsd ?? 0), price)],
    ['inputTokensMax', input > inputTokensMax ? 0 : Infinity],
  ]
}

/** Output tokens that the money left pays for, after the input has been paid. */
function affordableTokens(state: RunState, leftUsd: number, price: Price | undefined): number {
  if (leftUsd === Infinity || price === undefined) return Infinity
  const afterInput = leftUsd - costOf(price, { inputTokens: state.contextTokens })
  const perToken = ratesFor(price, state.contextTokens).outputUsd / 1_000_000
  if (afterInput <= 0) return 0
  return perToken === 0 ? Infinity : afterInput / perToken
}

/** How long a run has been at work, in milliseconds: waiting for a person or for a process does not count. */
export function activeMs(state: RunState, now: number): number {
  return now - state.startedAt - state.waitedMs
}

/** When the run's time is up, in milliseconds since 1970 UTC, if it works on without a pause. */
export function deadlineOf(state: RunState): number | undefined {
  const { durationMaxMs } = state.limits
  return durationMaxMs === undefined ? undefined : state.startedAt + state.waitedMs + durationMaxMs
}

/** How many more calls the run may start, however many turns it takes. */
export function callsLeft(state: RunState): number {
  const { toolCalls, children } = state.totals
  return (state.limits.toolCallsMax ?? Infinity) - toolCalls - children.toolCalls
}

/** The limit on repeats, where this call has met it. */
export function repeatLimit(state: RunState, call: Call): LimitFinding | undefined {
  const max = state.limits.repeatsMax ?? defaultLimits.repeatsMax
  const { repeated } = state.totals
  if (repeated >= max) return { limit: 'repeatsMax', max, used: repeated }
  const errors = ownValue(state.errorStreaks, call.name)?.count ?? 0
  return errors >= 2 * max ? { limit: 'repeatsMax', max, used: errors } : undefined
}

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, { limit, max, used: amount }: LimitFinding): Action {
  const policy = state.limits.onLimit ?? 'finalize'
  return {
    kind: 'meet_limit',
    facts: [{ type: 'limit_reached', turn: state.turn, limit, max, used: amount, policy }],
  }
}
