import type { JSX } from 'preact'
import { due, dueTrouble, readAt } from '../../state/overview.ts'
import { go } from '../../state/route.ts'
import { formatDuration, shortenId, showHidden } from '../../ui/text.tsx'

/** What has something to do, and when. */
export function DueRuns(): JSX.Element {
  if (dueTrouble.value !== undefined) return <p class="none bad">{dueTrouble.value}</p>
  const list = due.value?.due ?? []
  if (list.length === 0) return <p class="none soft">Nothing is due: no run waits for a time or a process.</p>
  return (
    <ul class="plain">
      {list.map(({ runId, at, schedule }) => (
        <li key={runId}>
          <OpenRun runId={runId} />
          <ScheduleName name={schedule} />
          <span class={at > 0 && at < readAt.value - 60_000 ? 'bad' : 'soft'}>{describeDue(at)}</span>
        </li>
      ))}
    </ul>
  )
}

function describeDue(at: number): string {
  // It waits for no time, but for a process that goes on with it.
  if (at <= 0) return 'at once'
  const inMs = at - readAt.value
  if (Math.abs(inMs) < 1_000) return 'now'
  return inMs > 0 ? `in ${formatDuration(inMs)}` : `${formatDuration(-inMs)} late`
}

/** Which process drives which run, and for how long it has said so. */
export function Leases(): JSX.Element {
  if (dueTrouble.value !== undefined) return <p class="none bad">{dueTrouble.value}</p>
  const list = due.value?.leases ?? []
  if (list.length === 0) return <p class="none soft">No process drives a run now.</p>
  return (
    <ul class="plain">
      {list.map(({ runId, holder, leftMs, schedule }) => (
        <li key={runId}>
          <OpenRun runId={runId} />
          <ScheduleName name={schedule} />
          <span class="holder soft" title={showHidden(holder)}>
            {showHidden(holder)}
          </span>
          <span class="soft">{leftMs > 0 ? `${formatDuration(leftMs)} left` : 'over'}</span>
        </li>
      ))}
    </ul>
  )
}

function ScheduleName({ name }: { readonly name: string | undefined }): JSX.Element | null {
  return name === undefined ? null : <span title={showHidden(name)}>schedule {showHidden(name)}</span>
}

function OpenRun({ runId }: { readonly runId: string }): JSX.Element {
  return (
    <button
      type="button"
      class="quiet"
      title={runId}
      onClick={() => go({ run: runId, at: undefined, call: undefined, with: undefined })}
    >
      <code>{shortenId(runId)}</code>
    </button>
  )
}
