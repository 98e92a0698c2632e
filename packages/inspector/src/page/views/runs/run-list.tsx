import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { before, listState, listTrouble, readMore, readQuery, rows } from '../../state/runs.ts'
import { tick, ticked } from '../../state/cases.ts'
import { hits, keepSearch } from '../../state/search.ts'
import { formatListPath } from '../../data/server-source.ts'
import { Boundary } from '../../ui/boundary.tsx'
import { formatConditions } from '../../ui/command.ts'
import { toMarkdownTable } from '../../ui/markdown-table.ts'
import { Same } from '../../ui/same.tsx'
import { showHidden } from '../../ui/text.tsx'
import { Trouble } from '../../ui/trouble.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'
import { CaseChoice } from './case-choice.tsx'
import { Filters, hasFilter } from './filters.tsx'
import { Hits } from './hits.tsx'
import { RunEntry, runEntryHeight } from './run-entry.tsx'
import './runs.css'

/** The runs of the ledger, newest first, as the filters let them through; or the events that a search found. */
export function RunList(): JSX.Element {
  useEffect(() => keepSearch(), [])
  return (
    <nav class="runs" aria-label="Runs">
      <Filters />
      {ticked.value !== undefined && <CaseChoice />}
      <Boundary name="The list">{hits.value === undefined ? <Runs /> : <Hits />}</Boundary>
    </nav>
  )
}

function Runs(): JSX.Element {
  const isEmpty = rows.value.length === 0 && before.value === undefined
  return (
    <>
      <Trouble words={listTrouble.value} />
      {listState.value === 'ready' && isEmpty && listTrouble.value === undefined ? <NoRuns /> : <Rows />}
      <SameList />
    </>
  )
}

function SameList(): JSX.Element {
  const query = readQuery()
  return (
    <Same
      command={['list', 'LEDGER', ...formatConditions(query)]}
      path={formatListPath(query)}
      json={() => rows.value}
      markdown={() =>
        toMarkdownTable(
          ['run', 'agent', 'status', 'began', 'first words', 'turns', 'calls', 'cost in $'],
          rows.value.map(({ runId, agent, status, startedAt, firstWords, turns, toolCalls, costUsd }) => [
            runId,
            agent,
            status,
            new Date(startedAt).toISOString(),
            firstWords,
            turns,
            toolCalls,
            costUsd,
          ]),
        )
      }
    />
  )
}

function NoRuns(): JSX.Element {
  if (hasFilter()) {
    return (
      <div class="empty">
        <p>No run fits these filters.</p>
      </div>
    )
  }
  return (
    <div class="empty">
      <p>
        <b>No runs yet.</b>
      </p>
      <p>As soon as an agent runs with this ledger, its run is here.</p>
    </div>
  )
}

function Rows(): JSX.Element {
  return (
    <VirtualList
      items={rows.value}
      rowHeight={runEntryHeight}
      isBusy={listState.value === 'loading'}
      keyOf={({ runId }) => runId}
      more={before.value}
      onEnd={readMore}
    >
      {(row) =>
        ticked.value === undefined ? (
          <RunEntry row={row} />
        ) : (
          <div class="ticking">
            <input
              type="checkbox"
              aria-label={`Take ${showHidden(row.firstWords ?? row.runId)}`}
              checked={ticked.value.has(row.runId)}
              onChange={() => tick(row.runId)}
            />
            <RunEntry row={row} />
          </div>
        )
      }
    </VirtualList>
  )
}
