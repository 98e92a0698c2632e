import type { JSX } from 'preact'
import { moment, restingSeq, worker } from '../state/open-run.ts'
import { runId } from '../state/route.ts'
import { fence } from '../ui/fence.ts'
import { Same } from '../ui/same.tsx'
import { formatTime, showHidden } from '../ui/text.tsx'
import { ValueTree } from '../ui/value-tree.tsx'
import type { Moment } from '../worker/moment.ts'

const noChanges: Moment['changes'] = []
const phases = ['idle', 'streaming', 'collecting', 'executing', 'injecting', 'done'] as const

/** The state at the event: the phase of the machine, what the controller does next and why, and what changed. */
export function StateView(): JSX.Element {
  const now = moment.value
  const resting = restingSeq.value
  if (now === undefined) return <p class="soft">No event is read yet.</p>
  return (
    <>
      <ol class="machine" aria-label="Phases of the machine">
        {phases.map((phase) => (
          <li key={phase} aria-current={phase === now.phase}>
            {phase}
          </li>
        ))}
      </ol>
      <Next now={now} />
      <div class="section">
        <h3>Changed by this event</h3>
        {now.changes.length === 0 && <p class="soft">Nothing but its place.</p>}
        {now.changes.map(({ path, before, after }) => (
          <div class="change" key={path.join('/')}>
            <span class="soft">{showHidden(path.join(' / '))} </span>
            {before && <del>{showHidden(before.preview)}</del>}{' '}
            {after && <ins>{showHidden(after.preview)}</ins>}
          </div>
        ))}
      </div>
      <div class="section">
        <h3>State</h3>
        <ValueTree root="state" seq={resting} changed={resting === now.seq ? now.changes : noChanges} />
      </div>
      <Same
        command={['show', 'LEDGER', runId.value ?? '', '--at', String(now.seq), '--json']}
        path={`runs/${runId.value}/state?at=${now.seq}`}
        json={() => worker.readJson('state', now.seq, [])}
        markdown={async () => fence(await worker.readJson('state', now.seq, []))}
      />
    </>
  )
}

function Next({ now: { next, legal, phase } }: { readonly now: Moment }): JSX.Element {
  return (
    <>
      <div class="section">
        <h3>Next</h3>
        <p>{describeNext(next)}</p>
        {next.inFlight.length > 0 && (
          <p class="soft">
            In flight: {next.inFlight.map(({ kind }) => kind.replaceAll('_', ' ')).join(', ')}
          </p>
        )}
        {next.facts.length > 0 && <p class="soft">It records first: {next.facts.join(', ')}</p>}
      </div>
      <details class="section">
        <summary>
          {legal.length === 1 ? '1 event is' : `${legal.length} events are`} legal in <b>{phase}</b>
        </summary>
        <p class="mono soft">{legal.join(', ')}</p>
      </details>
    </>
  )
}

function describeNext({ kind, isSuspended, wakeAt }: Moment['next']): string {
  if (kind === 'finished') return 'The run is done: nothing follows.'
  if (isSuspended || kind === 'suspend') return 'Nothing is in flight: only a command continues the run.'
  if (wakeAt !== undefined) return `Waits until ${formatTime(wakeAt)}.`
  if (kind === 'wait') return 'Waits for what is in flight.'
  return `The controller decides: ${kind.replaceAll('_', ' ')}.`
}

/** The event itself, as it is on record. */
export function EventView(): JSX.Element {
  const now = moment.value
  if (now === undefined) return <p class="soft">No event is read yet.</p>
  return (
    <>
      <p class="section">
        <b>{now.type}</b>
        <span class="soft">
          event {now.seq}, turn {now.turn}, {formatTime(now.at)}
        </span>
      </p>
      <ValueTree root="event" seq={now.seq} changed={noChanges} />
      <Same
        command={['show', 'LEDGER', runId.value ?? '', '--at', String(now.seq), '--events']}
        path={`runs/${runId.value}/events?after=${now.seq - 1}&limit=1`}
        json={() => worker.readJson('event', now.seq, [])}
        markdown={async () => fence(await worker.readJson('event', now.seq, []))}
      />
    </>
  )
}
