import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { keepMoney, money } from '../../state/money.ts'
import { runId } from '../../state/route.ts'
import { toMarkdownTable } from '../../ui/markdown-table.ts'
import { Same } from '../../ui/same.tsx'
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
      <Same
        command={['show', 'LEDGER', runId.value ?? '']}
        path={`runs/${runId.value}/steps`}
        json={() => spenders}
        markdown={() =>
          toMarkdownTable(
            ['turn', 'event', 'what', 'input tokens', 'output tokens', 'cost in $'],
            spenders.map(({ turn, seq, name, usage, costUsd }) => [
              turn,
              seq,
              name,
              usage.inputTokens,
              usage.outputTokens,
              costUsd,
            ]),
          )
        }
      />
    </div>
  )
}
