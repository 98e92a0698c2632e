import {
  grantFields,
  limitOfField,
  type Amounts,
  type Grant,
  type GrantField,
} from '../../vocabulary/limits/grant.ts'
import type { Usage } from '../../vocabulary/billing/usage.ts'
import type { Call, RunState } from '../state/state.ts'
import { summaryOf } from '../state/turn-calls.ts'

/** What a grant or what was spent falls short of a limit by, before it counts as past it: sums of dollars are rounded. */
const ROUNDING = 1e-9

const nothingSpent: Amounts = {
  turns: 0,
  toolCalls: 0,
  tokens: 0,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
}

/** What the run and the child runs that have ended have spent. */
export function spentOf({ totals }: RunState): Amounts {
  const { turns, toolCalls, children, usage, costUsd = 0 } = totals
  return {
    turns: turns + children.turns,
    toolCalls: toolCalls + children.toolCalls,
    ...tokensOf(usage),
    costUsd,
  }
}

function tokensOf({
  inputTokens = 0,
  outputTokens = 0,
}: Usage): Omit<Amounts, 'turns' | 'toolCalls' | 'costUsd'> {
  return { tokens: inputTokens + outputTokens, inputTokens, outputTokens }
}

/** What is granted and not yet spent: to the model call, the summary and the child runs that are under way. */
function grantedOf(state: RunState): Amounts {
  const { compacting } = state
  const attempt = state.phase === 'streaming' ? state.attempt : undefined
  let sum = nothingSpent
  if (attempt && !attempt.failed) sum = unusedOf(attempt.grant, state)
  if (compacting) sum = sumOf(sum, amountsOf(compacting.grant))
  for (const { grant = {} } of childCallsUnderWay(state)) sum = sumOf(sum, amountsOf(grant))
  return sum
}

function sumOf(one: Amounts, other: Amounts): Amounts {
  return mapFields((field) => one[field] + other[field])
}

/** The calls whose child runs may still spend. */
function childCallsUnderWay(state: RunState): readonly Call[] {
  if (state.phase !== 'executing' || summaryOf(state.calls).ofChildren === 0) return []
  return state.calls.filter(
    ({ child, grant, status }) => child !== undefined && grant !== undefined && status !== 'settled',
  )
}

/** What a model call has not used of its grant. Its turn is spent when it starts. */
function unusedOf(grant: Grant, { totals }: RunState): Amounts {
  const { settledCostUsd = 0, costUsd = 0 } = totals
  const used = { ...nothingSpent, ...tokensOf(totals.latestUsage), costUsd: costUsd - settledCostUsd }
  const granted = { ...amountsOf(grant), turns: 0 }
  return mapFields((field) => Math.max(0, granted[field] - used[field]))
}

/** A grant as amounts. What it does not bound counts as none: the run has no limit of that kind. */
function amountsOf(grant: Grant): Amounts {
  return mapFields((field) => boundOf(grant, field) ?? 0)
}

/** How much of a field a grant allows; `undefined` where it does not bound it. */
function boundOf(grant: Grant, field: GrantField): number | undefined {
  const { inputTokens, outputTokens } = grant
  if (field !== 'tokens' || grant.tokens !== undefined) return grant[field]
  return inputTokens === undefined || outputTokens === undefined ? undefined : inputTokens + outputTokens
}

/** What is left of each limit: neither spent nor granted. `Infinity` where there is no such limit; never below 0. */
export function leftOf(state: RunState): Amounts {
  const spent = spentOf(state)
  const granted = grantedOf(state)
  return mapFields((field) => {
    const max = state.limits[limitOfField[field]] ?? Infinity
    return Math.max(0, max - spent[field] - granted[field])
  })
}

/** How many tool calls are left, as `leftOf` says: asked at the start of each call. */
export function toolCallsLeft(state: RunState): number {
  const { limits, totals } = state
  const max = limits[limitOfField.toolCalls]
  if (max === undefined) return Infinity
  // A model call is granted none.
  const granted = childCallsUnderWay(state).reduce((sum, { grant }) => sum + (grant?.toolCalls ?? 0), 0)
  return Math.max(0, max - totals.toolCalls - totals.children.toolCalls - granted)
}

/**
 * Law 9: why a grant may not be given, where it may not. A child run takes turns and tool calls, so its grant has to
 * bound them; a model call takes none beside its own turn.
 */
export function grantFault(
  state: RunState,
  grant: Grant,
  spender: 'model_call' | 'child_run',
): string | undefined {
  const left = leftOf(state)
  for (const field of grantFields) {
    if (left[field] === Infinity) continue
    const limit = limitOfField[field]
    const amount = boundOf(grant, field)
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
