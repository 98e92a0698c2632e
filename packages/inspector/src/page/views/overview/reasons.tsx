import type { JSX } from 'preact'
import type { StatsBucket } from '../../../api.ts'
import { showHidden } from '../../ui/text.tsx'
import { showRuns } from '../runs/filters.tsx'

/** Why runs failed, the most frequent reason first. */
export function Reasons({ buckets }: { readonly buckets: readonly StatsBucket[] }): JSX.Element {
  const counts = new Map<string, number>()
  for (const { reasons } of buckets) {
    for (const [reason, count] of Object.entries(reasons))
      counts.set(reason, (counts.get(reason) ?? 0) + count)
  }
  const sorted = [...counts].sort((one, other) => other[1] - one[1])
  const most = sorted[0]?.[1] ?? 1
  if (sorted.length === 0) return <p class="none soft">No run has failed in this time.</p>
  return (
    <ul class="reasons">
      {sorted.map(([reason, count]) => (
        <li key={reason}>
          <button type="button" class="quiet" onClick={() => showRuns({ reason, since: buckets[0]!.at })}>
            <span class="name">{showHidden(reason.replaceAll('_', ' '))}</span>
            <span class="track" aria-hidden="true">
              <span style={{ width: `${(count / most) * 100}%` }} />
            </span>
            <span class="num">{count.toLocaleString('en')}</span>
          </button>
        </li>
      ))}
    </ul>
  )
}
