import type { JSX } from 'preact'
import type { StatsBucket } from '../../../api.ts'
import { formatCost, formatDuration, formatTime } from '../../ui/text.tsx'
import { openBucket } from './stats-charts.tsx'

/** The numbers of the charts, for those who read them better so. */
export function StatsTable({ buckets }: { readonly buckets: readonly StatsBucket[] }): JSX.Element | null {
  const used = buckets.filter(({ runs }) => runs > 0)
  if (used.length === 0) return null
  return (
    <details class="numbers">
      <summary>The numbers</summary>
      <div class="wide">
        <table>
          <thead>
            <tr>
              {['from', 'runs', 'done', 'waiting', 'failed', 'cost', 'tokens', 'p50', 'p95'].map((head) => (
                <th key={head} scope="col">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {used.toReversed().map((bucket) => (
              <tr key={bucket.at}>
                <th scope="row">
                  <button type="button" class="quiet" onClick={() => openBucket(bucket.at)}>
                    {formatTime(bucket.at)}
                  </button>
                </th>
                <td>{bucket.runs.toLocaleString('en')}</td>
                <td>{bucket.done.toLocaleString('en')}</td>
                <td>{bucket.suspended.toLocaleString('en')}</td>
                <td>{bucket.failed.toLocaleString('en')}</td>
                <td>{formatCost(bucket.costUsd)}</td>
                <td>{bucket.tokens.toLocaleString('en')}</td>
                <td>{bucket.p50Ms === undefined ? '–' : formatDuration(bucket.p50Ms)}</td>
                <td>{bucket.p95Ms === undefined ? '–' : formatDuration(bucket.p95Ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
