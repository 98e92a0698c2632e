import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { rowStatuses } from '../../../api.ts'
import { mayCollect, ticked } from '../../state/cases.ts'
import { go, type Route, route } from '../../state/route.ts'
import { formatTime, showHidden } from '../../ui/text.tsx'

/** Filters of one text each, and an example of it. */
const texts = [
  ['agent', 'Agent', 'support'],
  ['tool', 'Tool', 'refund'],
  ['outcome', 'Outcome', 'failed'],
  ['reason', 'Reason of the end', 'turn_limit'],
  ['session', 'Session', 'ann'],
  ['subject', 'Subject', 'customer-7'],
  ['tag', 'Tag', 'web'],
  ['feedbackBy', 'Feedback by', 'ann'],
  ['minScore', 'Score from', '0'],
  ['maxScore', 'Score to', '0.5'],
  ['input', 'Input of a call', 'order=A-7'],
] as const satisfies readonly (readonly [keyof Route, string, string])[]

const names = ['status', ...texts.map(([name]) => name), 'q', 'since', 'until'] as const
type FilterName = (typeof names)[number]

const isUnfolded = signal(false)

export function hasFilter(): boolean {
  return names.some((name) => route.value[name] !== undefined && route.value[name] !== '')
}

function readText(event: {
  readonly currentTarget: HTMLInputElement | HTMLSelectElement
}): string | undefined {
  return event.currentTarget.value.trim() || undefined
}

/** What the list is limited to, as the address says; and the search. */
export function Filters(): JSX.Element {
  const { status, q } = route.value
  const isOpen = isUnfolded.value
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Search all runs for words"
        placeholder="Search messages, calls and results"
        value={q ?? ''}
        onInput={(event) => go({ q: readText(event) })}
      />
      <div class="filter-row">
        <select
          aria-label="Status"
          value={status ?? ''}
          onChange={(event) => go({ status: readText(event) })}
        >
          <option value="">any status</option>
          {rowStatuses.map((each) => (
            <option key={each} value={each}>
              {each.replaceAll('_', ' ')}
            </option>
          ))}
        </select>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls="more-filters"
          onClick={() => (isUnfolded.value = !isOpen)}
        >
          {isOpen ? 'Fewer filters' : 'More filters'}
        </button>
        {mayCollect() && ticked.value === undefined && (
          <button
            type="button"
            title="Make cases of runs, for an evaluation"
            onClick={() => (ticked.value = new Set())}
          >
            Cases…
          </button>
        )}
      </div>
      {isOpen && (
        <div class="more-filters" id="more-filters">
          {texts.map(([name, label, example]) => (
            <label key={name}>
              <span>{label}</span>
              <input
                placeholder={example}
                value={route.value[name] ?? ''}
                onChange={(event) => go({ [name]: readText(event) })}
              />
            </label>
          ))}
        </div>
      )}
      <Chips isOpen={isOpen} />
    </form>
  )
}

/** The filters that are on and not seen otherwise, each with a way to take it off. */
function Chips({ isOpen }: { readonly isOpen: boolean }): JSX.Element | null {
  const { since, until } = route.value
  const hidden = isOpen ? [] : texts.filter(([name]) => route.value[name])
  const hasTime = since !== undefined || until !== undefined
  if (!hasFilter() || (hidden.length === 0 && !hasTime && !isOpen && !route.value.status)) return null
  return (
    <ul class="chips" aria-label="Filters that are on">
      {hidden.map(([name, label]) => (
        <Chip
          key={name}
          words={`${label.toLowerCase()}: ${showHidden(String(route.value[name]))}`}
          off={[name]}
        />
      ))}
      {hasTime && <Chip words={describeTime(since, until)} off={['since', 'until']} />}
      <li>
        <button type="button" class="quiet" onClick={() => takeOff(names)}>
          Clear all
        </button>
      </li>
    </ul>
  )
}

function Chip({ words, off }: { readonly words: string; readonly off: readonly FilterName[] }): JSX.Element {
  return (
    <li class="chip">
      <span title={words}>{words}</span>
      <button type="button" class="quiet" aria-label={`Take off ${words}`} onClick={() => takeOff(off)}>
        ✕
      </button>
    </li>
  )
}

/** Shows the runs that these filters let through, and no others. */
export function showRuns(filters: Pick<Route, 'reason' | 'status' | 'since' | 'until'>): void {
  go({ ...Object.fromEntries(names.map((name) => [name, undefined])), ...filters })
}

function takeOff(filters: readonly FilterName[]): void {
  go(Object.fromEntries(filters.map((name) => [name, undefined])))
}

function describeTime(since: number | undefined, until: number | undefined): string {
  if (since === undefined) return `before ${formatTime(until!)}`
  return until === undefined ? `since ${formatTime(since)}` : `${formatTime(since)} – ${formatTime(until)}`
}
