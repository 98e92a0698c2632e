import type { JSX } from 'preact'
import { seq } from '../../state/open-run.ts'
import { type Budget, findPoint, type Spender } from '../../worker/money.ts'
import { computeCachedShare, formatAmount, nameField } from './amounts.ts'
import { Estimate } from './estimate.tsx'

/** What was spent of each budget by the event that is looked at. Kinds of tokens are shown where they have a limit. */
export function BudgetCards({
  budgets,
  spenders,
}: {
  readonly budgets: readonly Budget[]
  readonly spenders: readonly Spender[]
}): JSX.Element {
  const isEstimated = spenders.some((spender) => spender.seq <= seq.value && spender.estimated.length > 0)
  const shown = [...budgets]
    .sort((one, other) => order.indexOf(one.field) - order.indexOf(other.field))
    .filter(({ field, max }) => max.at(-1)! >= 0 || !field.endsWith('putTokens'))
  return (
    <ul class="cards">
      {shown.map((budget) => (
        <Card
          key={budget.field}
          budget={budget}
          isEstimated={isEstimated && (budget.field === 'costUsd' || budget.field.endsWith('okens'))}
          cached={budget.field === 'tokens' ? describeCached(spenders) : undefined}
        />
      ))}
    </ul>
  )
}

const order: readonly Budget['field'][] = [
  ...(['costUsd', 'tokens', 'inputTokens', 'outputTokens', 'turns', 'toolCalls'] as const),
]

function describeCached(spenders: readonly Spender[]): string | undefined {
  const counted = spenders.filter((spender) => spender.seq <= seq.value && spender.kind !== 'child')
  const usage = {
    inputTokens: counted.reduce((sum, { usage: { inputTokens = 0 } }) => sum + inputTokens, 0),
    cacheReadTokens: counted.reduce((sum, { usage: { cacheReadTokens = 0 } }) => sum + cacheReadTokens, 0),
  }
  const share = computeCachedShare({ usage })
  return share ? `${Math.round(share * 100)}% of input from cache` : undefined
}

function Card({
  budget,
  isEstimated,
  cached,
}: {
  readonly budget: Budget
  readonly isEstimated: boolean
  readonly cached: string | undefined
}): JSX.Element {
  const { field } = budget
  const { spent = 0, granted = 0, max } = findPoint(budget, seq.value) ?? {}
  const share = (amount: number): string => `${Math.min(100, (amount / (max || 1)) * 100)}%`
  const notes = [
    max !== undefined && `of ${formatAmount(field, max)}`,
    granted > 0 && `${formatAmount(field, granted)} granted`,
    cached,
  ].filter(Boolean)
  return (
    <li class="card">
      <span class="name">{nameField(field)}</span>
      <div class="amount">
        {isEstimated && <Estimate why="Part of it is an estimate: no provider reported it" />}
        {formatAmount(field, spent)}
      </div>
      {max !== undefined && (
        <div
          class={spent >= max ? 'meter full' : 'meter'}
          role="img"
          aria-label={`${Math.round((spent / (max || 1)) * 100)}% spent, ${Math.round((granted / (max || 1)) * 100)}% granted`}
        >
          <span class="spent" style={{ width: share(spent) }} />
          <span class="granted" style={{ width: share(Math.min(granted, Math.max(0, max - spent))) }} />
        </div>
      )}
      <div class="soft">{notes.length > 0 ? notes.join(', ') : 'no limit'}</div>
    </li>
  )
}
