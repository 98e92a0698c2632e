import { limitOfField, type Amounts, type Grant, type GrantField } from '../../vocabulary/limits/grant.ts'
import {
  ratesFor,
  searchesCost,
  type Price,
  type Rates,
  type MaxWebSearches,
} from '../../vocabulary/billing/price.ts'
import { leftOf, spentOf } from './budget.ts'
import { deadlineOf, onLimitOf, workDeadline } from './deadlines.ts'
import { timeLimit, type LimitFinding } from './limit-finding.ts'
import type { RunState } from '../state/state.ts'
import { currentModel, priceOf } from '../state/state-views.ts'

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
  /** Whether it begins a turn. */
  readonly startsTurn: boolean
  /** The most output tokens that it may have by its own settings. */
  readonly maxOutputTokens?: number | undefined
  /** Whether it is the call that writes the answer at a limit. */
  readonly finalizing: boolean
  /** Whether enough has to be left after it for a call that writes the answer. */
  readonly keepsFinalizing: boolean
}

/**
 * Checks every limit before a model call: what the call may use, or the limit that prevents it, because the time of the
 * run is up or too little is left.
 */
export function grantModelCall(state: RunState, now: number, call: PlannedCall): Grant | LimitFinding {
  return timeFinding(state, now, call.finalizing) ?? grantAmounts(state, call)
}

function timeFinding(state: RunState, now: number, finalizing: boolean): LimitFinding | undefined {
  const deadline = finalizing ? deadlineOf(state) : workDeadline(state)
  if (deadline === undefined || now < deadline) return undefined
  return timeLimit(state, now)
}

/** What a model call may use by the amounts that are left, or the limit that leaves it too little. */
function grantAmounts(state: RunState, call: PlannedCall): Grant | LimitFinding {
  const left = leftOf(state)
  const needed = neededBeside(call)
  const turnsNeeded = (call.startsTurn ? 1 : 0) + needed.turns
  if (left.turns < turnsNeeded) return finding(state, 'turns', needed)
  const outputs = outputAllowed(call, left)
  const [field, outputTokens] = outputs.reduce((least, next) => (next[1] < least[1] ? next : least))
  if (outputTokens < OUTPUT_TOKENS_MIN) return finding(state, field, needed)
  return grantOf(call, Math.min(Math.floor(outputTokens), call.maxOutputTokens ?? Infinity))
}

/** Whether an answer is a limit that was found. */
export function isLimitFinding(answer: Grant | LimitFinding): answer is LimitFinding {
  return 'limit' in answer
}

function grantOf(call: PlannedCall, outputTokens: number): Grant {
  const { price, inputTokens, startsTurn, maxWebSearches = 0 } = call
  const searches =
    typeof maxWebSearches === 'number' && maxWebSearches > 0 ? { webSearches: maxWebSearches } : {}
  const turns = startsTurn ? 1 : 0
  if (outputTokens === Infinity) {
    // Output that costs nothing needs no bound, and the input is paid for all the same.
    const isFree = price !== undefined && ratesFor(price, inputTokens).outputUsd === 0
    return { turns, inputTokens, ...searches, ...(isFree && grantedCost(call, 0)) }
  }
  return { turns, inputTokens, outputTokens, ...searches, ...grantedCost(call, outputTokens) }
}

/** The money of a call. Searches without a bound leave it without one, which is legal only where no limit counts money. */
function grantedCost(call: PlannedCall, outputTokens: number): Pick<Grant, 'costUsd'> {
  const { price, inputTokens, maxWebSearches = 0 } = call
  if (price === undefined) return {}
  const costUsd = callCost(price, inputTokens, outputTokens) + searchesCost(price, maxWebSearches)
  return costUsd === Infinity ? {} : { costUsd }
}

function finding(
  state: RunState,
  field: GrantField,
  held: { readonly [F in GrantField]?: number },
): LimitFinding {
  const limit = limitOfField[field]
  const used = spentOf(state)[field]
  return { limit, max: state.limits[limit] ?? 0, used, ...(held[field] ? { held: held[field] } : {}) }
}

/** What a run has to keep for its next model call and the finalizing call, beside what child runs may use. */
export function finalizingNeeds(state: RunState): { readonly [F in GrantField]?: number } {
  if (onLimitOf(state.limits) !== 'finalize') return {}
  const price = priceOf(state, currentModel(state))
  return neededBeside({ keepsFinalizing: true, inputTokens: state.contextTokens, price })
}

/** What is held back for the finalizing call: the last turn of a limit is the one that writes the answer. */
function neededBeside({
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
    ...(price && { costUsd: callCost(price, inputTokens, FINALIZING_OUTPUT_TOKENS) }),
  }
}

/** The output tokens that each limit leaves, when the input and the finalizing call have been taken off. */
function outputAllowed(call: PlannedCall, left: Amounts): readonly (readonly [GrantField, number])[] {
  const { inputTokens: input, keepsFinalizing } = call
  if (!keepsFinalizing) {
    return [
      ['tokens', left.tokens - input],
      ['outputTokens', left.outputTokens],
      ['costUsd', affordableOutput(call, left.costUsd)],
      ['inputTokens', input > left.inputTokens ? 0 : Infinity],
    ]
  }
  // What this call puts out, the finalizing call takes in: each token counts twice.
  return [
    ['tokens', (left.tokens - 2 * input - FINALIZING_OUTPUT_TOKENS) / 2],
    ['outputTokens', left.outputTokens - FINALIZING_OUTPUT_TOKENS],
    ['costUsd', affordableOutput(call, left.costUsd)],
    ['inputTokens', left.inputTokens - 2 * input],
  ]
}

/**
 * Output tokens that the money left pays for. Without a price, or with priced searches that nothing bounds, no call is
 * affordable: no grant could hold the limit.
 */
function affordableOutput(call: PlannedCall, leftUsd: number): number {
  const { price, inputTokens, keepsFinalizing, maxWebSearches = 0 } = call
  if (leftUsd === Infinity) return Infinity
  if (price === undefined) return 0
  const own = leftUsd - callCost(price, inputTokens, 0) - searchesCost(price, maxWebSearches)
  const finalizing = ratesFor(price, 2 * inputTokens)
  const afterInput = keepsFinalizing ? own - callCost(price, inputTokens, FINALIZING_OUTPUT_TOKENS) : own
  if (afterInput <= 0) return 0
  const perToken =
    (ratesFor(price, inputTokens).outputUsd + (keepsFinalizing ? dearestInput(finalizing) : 0)) / 1_000_000
  return perToken === 0 ? Infinity : afterInput / perToken
}

/** The most that a call can cost: all of its input may be written to the provider's cache. */
function callCost(price: Price, inputTokens: number, outputTokens: number): number {
  const rates = ratesFor(price, inputTokens)
  return (inputTokens * dearestInput(rates) + outputTokens * rates.outputUsd) / 1_000_000
}

function dearestInput(rates: Rates): number {
  const { inputUsd, cacheWriteUsd = inputUsd, cacheWriteLongUsd = cacheWriteUsd } = rates
  return Math.max(inputUsd, cacheWriteUsd, cacheWriteLongUsd)
}
