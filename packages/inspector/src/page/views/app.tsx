import type { JSX } from 'preact'
import type { ParentRef } from '@tallystick/core/vocabulary'
import { useEffect, useState } from 'preact/hooks'
import { takeDroppedExports } from '../state/dropped.ts'
import { keepOpenRun, lines, lastSeq, runFault, runTrouble, worker } from '../state/open-run.ts'
import { go, route } from '../state/route.ts'
import { keepRuns, may, rows, self } from '../state/runs.ts'
import { source } from '../state/source.ts'
import { useRead } from '../state/use-read.ts'
import { Boundary } from '../ui/boundary.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { StatusBadge } from '../ui/status.tsx'
import { type Tab, TabPane } from '../ui/tabs.tsx'
import { formatCost, formatDuration, shortenId, showHidden } from '../ui/text.tsx'
import { WaitingFor } from './actions/decisions.tsx'
import { NewRun } from './actions/new-run.tsx'
import { RunMenu } from './actions/run-menu.tsx'
import { CallView } from './call-view.tsx'
import { Conversation } from './conversation.tsx'
import { EventList } from './event-list.tsx'
import { ModelSaw } from './model-saw.tsx'
import { MoneyView } from './money/money.tsx'
import { Overview } from './overview/overview.tsx'
import { RunList } from './runs/run-list.tsx'
import { PairView } from './pair-view.tsx'
import { Scrubber } from './scrubber.tsx'
import { EventView, StateView } from './state-view.tsx'
import { Timeline } from './timeline/timeline.tsx'
import { TrustView } from './trust-view.tsx'

/** Views of the pane beside the conversation, and of the last pane. */
const middle: readonly Tab[] = [
  { id: 'saw', label: 'Model saw', view: ModelSaw },
  { id: 'call', label: 'Call', view: CallView },
  { id: 'events', label: 'Events', view: EventList, isFlush: true },
  { id: 'money', label: 'Money', view: MoneyView },
  { id: 'pair', label: 'Compare', view: PairView },
]
const right: readonly Tab[] = [
  { id: 'state', label: 'State', view: StateView },
  { id: 'event', label: 'Event', view: EventView },
  { id: 'trust', label: 'Trust', view: TrustView },
]

export function App(): JSX.Element {
  useEffect(() => takeDroppedExports(), [])
  useEffect(() => keepRuns(), [source.value])
  useEffect(() => keepOpenRun(), [])
  const { run } = route.value
  const title = self.value?.title ?? 'Inspector'
  useEffect(() => {
    document.title = run === undefined ? title : `${run.slice(-8)} in ${title}`
  }, [run, title])
  return (
    <div class={run === undefined ? 'page' : 'page has-run'}>
      <header class="bar">
        {run !== undefined && (
          <button type="button" class="quiet" onClick={() => go({ run: undefined, at: undefined })}>
            ‹ Overview
          </button>
        )}
        <h1>{showHidden(title)}</h1>
        <BarEnd />
      </header>
      <RunList />
      <main class="run">{run === undefined ? <Overview /> : <OpenRun run={run} />}</main>
    </div>
  )
}

function BarEnd(): JSX.Element {
  const [isStarting, setStarting] = useState(false)
  const [isHelping, setHelping] = useState(false)
  const mayStart = may('start') && (self.value?.agents.length ?? 0) > 0
  return (
    <div class="end">
      {source.value.kind === 'server' && self.value?.may.length === 0 && <span class="badge">read-only</span>}
      {mayStart && (
        <button type="button" class="primary" onClick={() => setStarting(true)}>
          New run
        </button>
      )}
      <button type="button" class="quiet" onClick={() => setHelping(true)}>
        Keys
      </button>
      {isHelping && <Keys onClose={() => setHelping(false)} />}
      {isStarting && <NewRun onClose={() => setStarting(false)} />}
    </div>
  )
}

/** What the keys do while no field has the focus. */
const keys: readonly (readonly [key: string, what: string])[] = [
  ['← →', 'the event before, the next event'],
  ['[ ]', 'the turn before, the next turn'],
  ['Home', 'the first event'],
  ['End', 'the last event, and those that come'],
]

function Keys({ onClose }: { readonly onClose: () => void }): JSX.Element {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <table>
        <tbody>
          {keys.map(([key, what]) => (
            <tr key={key}>
              <th scope="row" class="mono">
                {key}
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  )
}

function OpenRun({ run }: { readonly run: string }): JSX.Element {
  return (
    <>
      <RunHeader run={run} />
      <WaitingFor />
      <Boundary name="The timeline">
        <Timeline />
      </Boundary>
      <Scrubber />
      <div class="columns">
        <Conversation />
        <TabPane name="middle" label="What happened" tabs={middle} />
        <TabPane name="right" label="State" tabs={right} />
      </div>
    </>
  )
}

const relations: Readonly<Record<ParentRef['relation'], string>> = {
  child: 'does a call of',
  fork: 'fork of',
  branch: 'branch of',
  session: 'follows',
}

/** The run from which the open one comes, at the event where it does. */
function ComesFrom({ parent: { relation, runId, seq } }: { readonly parent: ParentRef }): JSX.Element {
  return (
    <button
      type="button"
      class="quiet soft"
      onClick={() => go({ run: runId, at: seq, call: undefined, with: undefined })}
    >
      ↰ {relations[relation]} <code>{shortenId(runId)}</code>
    </button>
  )
}

function RunHeader({ run }: { readonly run: string }): JSX.Element {
  const row = rows.value.find(({ runId }) => runId === run)
  const first = lastSeq.value > 0 ? lines[0] : undefined
  const last = lines[lastSeq.value - 1]
  const start = useRead(`${run} ${lastSeq.value > 0}`, () => worker.readStart()).value
  return (
    <header class="run-header">
      <span class="title">{showHidden(row?.agent ?? start?.agent ?? 'run')}</span>
      <code class="soft">{run}</code>
      {start?.parent && <ComesFrom parent={start.parent} />}
      {row && (
        <StatusBadge status={row.status} {...(row.reason && { words: row.reason.replaceAll('_', ' ') })} />
      )}
      {first && last && <span class="soft">{formatDuration(last.at - first.at)}</span>}
      {row?.costUsd !== undefined && <span class="soft">{formatCost(row.costUsd)}</span>}
      <RunMenu />
      {runTrouble.value !== undefined && (
        <span class="badge bad" role="alert">
          {runTrouble.value}
        </span>
      )}
      {runFault.value !== undefined && (
        <span class="badge bad" role="alert">
          Event {runFault.value.seq} cannot be folded: {runFault.value.message}
        </span>
      )}
    </header>
  )
}
