import { useVirtualizer } from '@tanstack/react-virtual'
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { rowStatuses, type RunRow } from '../../api.ts'
import { go, route } from '../state/route.ts'
import { before, listState, listTrouble, readMore, rows } from '../state/runs.ts'
import { Boundary } from '../ui/boundary.tsx'
import { StatusSign, toneOfOutcome } from '../ui/status.tsx'
import { formatCost, formatDuration, formatTime, showHidden } from '../ui/text.tsx'

const rowHeight = 60

/** The runs of the ledger, newest first, as many as the filters let through. */
export function RunList(): JSX.Element {
  return (
    <nav class="runs" aria-label="Runs">
      <Filters />
      {listTrouble.value !== undefined && (
        <p class="notice bad" role="alert">
          {listTrouble.value}
        </p>
      )}
      {listState.value === 'ready' && rows.value.length === 0 && listTrouble.value === undefined ? (
        <p class="empty">{hasFilter() ? 'No run fits these filters.' : 'The ledger has no runs yet.'}</p>
      ) : (
        <Boundary name="The list of runs">
          <Rows />
        </Boundary>
      )}
    </nav>
  )
}

const filterNames = ['status', 'agent', 'tool', 'outcome', 'session', 'subject', 'tag'] as const

function hasFilter(): boolean {
  return filterNames.some((name) => route.value[name])
}

function Filters(): JSX.Element {
  const { status, agent, tool } = route.value
  const read = (event: Event): string | undefined =>
    (event.currentTarget as HTMLInputElement).value || undefined
  return (
    <div class="filters">
      <div class="row">
        <select aria-label="Status" value={status ?? ''} onChange={(event) => go({ status: read(event) })}>
          <option value="">any status</option>
          {rowStatuses.map((each) => (
            <option key={each} value={each}>
              {each.replace('_', ' ')}
            </option>
          ))}
        </select>
        <input
          placeholder="agent"
          aria-label="Agent"
          value={agent ?? ''}
          onChange={(event) => go({ agent: read(event) })}
        />
        <input
          placeholder="tool"
          aria-label="Tool"
          value={tool ?? ''}
          onChange={(event) => go({ tool: read(event) })}
        />
      </div>
      {hasFilter() && (
        <button
          type="button"
          class="quiet"
          onClick={() => go(Object.fromEntries(filterNames.map((name) => [name, undefined])))}
        >
          Clear filters
        </button>
      )}
    </div>
  )
}

function Rows(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null)
  const shown = rows.value
  const list = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  })
  const items = list.getVirtualItems()
  const isAtEnd = (items.at(-1)?.index ?? 0) >= shown.length - 1
  useEffect(() => {
    if (isAtEnd && before.value !== undefined) void readMore()
  }, [isAtEnd, shown.length])
  return (
    <div class="list" ref={scroller} aria-busy={listState.value === 'loading'}>
      <ul style={{ height: `${list.getTotalSize()}px`, position: 'relative' }}>
        {items.map(({ index, start }) => (
          <li key={shown[index]!.runId} style={{ position: 'absolute', insetInline: 0, top: `${start}px` }}>
            <Row row={shown[index]!} />
          </li>
        ))}
      </ul>
    </div>
  )
}

function Row({ row }: { readonly row: RunRow }): JSX.Element {
  const { runId, status, agent, firstWords, startedAt, lastAt, turns, toolCalls, costUsd, worst, tools } = row
  return (
    <button
      type="button"
      class="run-row"
      aria-current={route.value.run === runId}
      onClick={() => go({ run: runId, at: undefined, call: undefined, with: undefined })}
    >
      <StatusSign status={status} />
      <span class="words">
        {firstWords === undefined ? <i class="soft">no words</i> : showHidden(firstWords)}
      </span>
      <span class="soft">{formatTime(startedAt)}</span>
      <span class="detail">
        <span>{agent}</span>
        {worst === undefined ? (
          <span>
            {turns} turns, {toolCalls} calls
          </span>
        ) : (
          <span class="bad" title={worst.text}>
            {worst.what.replaceAll('_', ' ')}
          </span>
        )}
        <span>{formatDuration(lastAt - startedAt)}</span>
        {costUsd !== undefined && <span>{formatCost(costUsd)}</span>}
        <Sparkline tools={tools} />
      </span>
    </button>
  )
}

/** A mark for each tool call: taller where it failed. */
function Sparkline({ tools }: Pick<RunRow, 'tools'>): JSX.Element | null {
  if (tools.length === 0) return null
  const failures = tools.filter(({ outcome }) => toneOfOutcome(outcome) === 'bad').length
  return (
    <svg
      class="spark"
      width={tools.length * 3}
      height="12"
      role="img"
      aria-label={`${tools.length} tool calls, ${failures} of them without success`}
    >
      {tools.map(({ outcome }, index) => {
        const isBad = toneOfOutcome(outcome) === 'bad'
        const height = isBad ? 12 : 6
        return (
          <rect
            key={index}
            x={index * 3}
            y={12 - height}
            width="2"
            height={height}
            fill={isBad ? 'var(--bad)' : 'var(--text-faint)'}
          />
        )
      })}
    </svg>
  )
}
