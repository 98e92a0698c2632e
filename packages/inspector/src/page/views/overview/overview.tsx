import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { StatsBucket } from '../../../api.ts'
import {
  getBucketMs,
  getStatsQuery,
  keepOverview,
  range,
  ranges,
  stats,
  statsTrouble,
} from '../../state/overview.ts'
import { source } from '../../state/source.ts'
import { toMarkdownTable } from '../../ui/markdown-table.ts'
import { Same } from '../../ui/same.tsx'
import { Trouble } from '../../ui/trouble.tsx'
import { DueRuns, Leases } from './due.tsx'
import { Reasons } from './reasons.tsx'
import { CostChart, DurationChart, RunsChart } from './stats-charts.tsx'
import { StatsTable } from './stats-table.tsx'
import './overview.css'

/** The ledger as a whole, while no run is open: runs over time, why they failed, what is due, and who drives what. */
export function Overview(): JSX.Element {
  useEffect(() => keepOverview(), [])
  if (source.value.kind !== 'server') {
    return (
      <div class="empty">
        <p>Choose a run to see what happened in it.</p>
      </div>
    )
  }
  return (
    <div class="overview" tabIndex={0} role="region" aria-label="Overview">
      <div class="ranges" role="group" aria-label="Time">
        {ranges.map((each) => (
          <button
            key={each.id}
            type="button"
            class="quiet"
            aria-pressed={range.value === each}
            onClick={() => (range.value = each)}
          >
            {each.words}
          </button>
        ))}
      </div>
      <Trouble words={statsTrouble.value} />
      <div class="panels">
        {stats.value !== undefined && <StatsPanels buckets={stats.value} />}
        <Panel title="Due">
          <DueRuns />
        </Panel>
        <Panel title="Leases">
          <Leases />
        </Panel>
      </div>
      <StatsTable buckets={stats.value ?? []} />
      <Same
        command={[
          'stats',
          'LEDGER',
          '--days',
          String((range.value.count * getBucketMs(range.value)) / 86_400_000),
        ]}
        path={`stats?${new URLSearchParams(Object.entries(getStatsQuery(range.value)).map(([name, value]) => [name, String(value)]))}`}
        json={() => stats.value ?? []}
        markdown={() =>
          toMarkdownTable(
            ['time', 'runs', 'done', 'failed', 'waiting', 'cost in $', 'p50 in ms', 'p95 in ms'],
            (stats.value ?? []).map(({ at, runs, done, failed, suspended, costUsd, p50Ms, p95Ms }) => [
              new Date(at).toISOString(),
              runs,
              done,
              failed,
              suspended,
              costUsd,
              p50Ms,
              p95Ms,
            ]),
          )
        }
      />
    </div>
  )
}

function StatsPanels({ buckets }: { readonly buckets: readonly StatsBucket[] }): JSX.Element {
  return (
    <>
      <Panel title="Runs" hint="A bar opens its runs.">
        <RunsChart buckets={buckets} />
      </Panel>
      <Panel title="Failures by reason">
        <Reasons buckets={buckets} />
      </Panel>
      <Panel title="Cost">
        <CostChart buckets={buckets} />
      </Panel>
      <Panel title="Time to the end" hint="Half of them, and 95%, took at most so long.">
        <DurationChart buckets={buckets} />
      </Panel>
    </>
  )
}

function Panel({
  title,
  hint,
  children,
}: {
  readonly title: string
  readonly hint?: string
  readonly children: JSX.Element
}): JSX.Element {
  return (
    <section class="panel" aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        {hint !== undefined && <span class="faint">{hint}</span>}
      </div>
      {children}
    </section>
  )
}
