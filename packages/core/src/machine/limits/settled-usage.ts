import type { FactOf } from '../../vocabulary/events/event.ts'
import type { FailureClass } from '../../vocabulary/model/failure.ts'
import { costOf, type Price } from '../../vocabulary/billing/price.ts'
import { largerUsage, type Usage, type UsageField } from '../../vocabulary/billing/usage.ts'
import type { RunState, StreamingState } from '../state/state.ts'
import { priceOf } from '../state/state-views.ts'

/** A report below this share of what was counted here is not believed: no tokenizer packs text so densely. */
const BELIEVED_SHARE = 1 / 4
/** The same for input, of which more is estimated: documents, images, tools. */
const BELIEVED_INPUT_SHARE = 1 / 16

/** Failures after which a provider may have billed a call although nothing of its reply arrived. */
const maybeBilled: ReadonlySet<FailureClass | 'cancelled'> = new Set([
  ...(['timeout', 'truncated', 'interrupted', 'cancelled'] as const),
])

/** Whether a limit of the run counts tokens or money. */
export function countsTokens({ limits }: RunState): boolean {
  const { maxTotalTokens, maxTotalInputTokens, maxTotalOutputTokens, maxCostUsd } = limits
  return (maxTotalTokens ?? maxTotalInputTokens ?? maxTotalOutputTokens ?? maxCostUsd) !== undefined
}

/**
 * What settles the grant of an attempt that ends here, where its provider's report cannot: the larger of the report and
 * the estimate, marked as estimated. Empty where the report is believable, where no limit depends on it, or where the
 * call failed before it could be billed. `cutBy` says what cut the reply off; absent for a whole reply.
 */
export function settledUsage(
  state: StreamingState,
  cutBy?: FailureClass | 'cancelled',
): readonly FactOf<'usage_updated'>[] {
  if (!countsTokens(state) || !mayBeBilled(state, cutBy)) return []
  const { attempt, totals } = state
  const estimate: Usage = {
    inputTokens: attempt.grant.inputTokens ?? state.contextTokens,
    outputTokens: Math.ceil(attempt.streamedTokens),
  }
  const believed = believedUsage(totals.latestUsage, estimate)
  const { usage, estimated } = cutBy === undefined ? believed : withSearches(state, believed)
  if (estimated.length === 0) return []
  const here = { type: 'usage_updated' as const, turn: state.turn, attempt: attempt.number }
  return [{ ...here, usage, ...costFields(priceOf(state, attempt.model), usage), estimated }]
}

/** The cost of some usage at a price, as fields of an event; none where the price is unknown. */
export function costFields(
  price: Price | undefined,
  usage: Usage,
): { readonly costUsd?: number; readonly price?: Price } {
  return price === undefined ? {} : { costUsd: costOf(price, usage), price }
}

/** A reply that was cut off does not say how many searches it took: where money is limited, all that were granted count. */
function withSearches(state: StreamingState, believed: Believed): Believed {
  const { webSearches = 0 } = state.attempt.grant
  const { webSearchUsd = 0 } = priceOf(state, state.attempt.model) ?? {}
  const { usage, estimated } = believed
  const counts = state.limits.maxCostUsd !== undefined && webSearchUsd > 0
  if (!counts || webSearches <= (usage.webSearches ?? 0)) return believed
  return { usage: { ...usage, webSearches }, estimated: [...estimated, 'webSearches'] }
}

function mayBeBilled(
  { attempt, totals }: StreamingState,
  cutBy: FailureClass | 'cancelled' | undefined,
): boolean {
  const came = attempt.streamedTokens > 0 || Object.keys(totals.latestUsage).length > 0
  return came || cutBy === undefined || maybeBilled.has(cutBy)
}

/** A usage, and which of its fields are estimated. */
interface Believed {
  readonly usage: Usage
  readonly estimated: readonly UsageField[]
}

/** A report, with the estimate in the place of each number that is missing or too small to be believed. */
export function believedUsage(
  report: Usage,
  estimate: Pick<Usage, 'inputTokens' | 'outputTokens'>,
): Believed {
  const shares = { inputTokens: BELIEVED_INPUT_SHARE, outputTokens: BELIEVED_SHARE }
  const estimated = (['inputTokens', 'outputTokens'] as const).filter((field) => {
    const reported = report[field]
    return reported === undefined || reported < (estimate[field] ?? 0) * shares[field]
  })
  const taken = Object.fromEntries(estimated.map((field) => [field, estimate[field] ?? 0]))
  return { usage: largerUsage(report, taken), estimated }
}
