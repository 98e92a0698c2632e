import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { keepMoney, money } from '../../state/money.ts'
import { BudgetCards } from './budget-cards.tsx'
import { BurnDown } from './burn-down.tsx'
import { ChildGrants } from './child-grants.tsx'
import { SpenderTable } from './spender-table.tsx'
import './money.css'

/** What the run used by the event that is looked at: tokens and cost, its budgets, and what child runs were granted. */
export function MoneyView(): JSX.Element {
  useEffect(() => keepMoney(), [])
  if (money.value === undefined) return <p class="soft">Nothing was spent yet.</p>
  const { spenders, budgets, children } = money.value
  return (
    <div class="money">
      <BudgetCards budgets={budgets} spenders={spenders} />
      <BurnDown budgets={budgets} />
      {children.length > 0 && <ChildGrants grants={children} />}
      <SpenderTable spenders={spenders} />
    </div>
  )
}
