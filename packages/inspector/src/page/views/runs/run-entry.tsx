import type { JSX } from 'preact'
import type { RunRow } from '../../../api.ts'
import { go, route } from '../../state/route.ts'
import { StatusSign, toneOfOutcome } from '../../ui/status.tsx'
import { formatCost, formatDuration, formatTime, showHidden } from '../../ui/text.tsx'

export const runEntryHeight = 60

/** A run of the list: its first words, how it stands, and the worst that happened in it. */
export function RunEntry({ row }: { readonly row: RunRow }): JSX.Element {
  const { runId, status, agent, parent, firstWords, startedAt, lastAt, turns, toolCalls } = row
  const { costUsd, worst, tools, feedback } = row
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
      <span class="soft">{startedAt > 0 ? formatTime(startedAt) : ''}</span>
      <span class="detail">
        <span class="agent">
          {parent?.relation === 'child' && <span title="A child run: it does a call of another run">↳ </span>}
          {showHidden(agent)}
        </span>
        {worst === undefined ? (
          <span class="worst">
            {countThings(turns, 'turn')}, {countThings(toolCalls, 'call')}
          </span>
        ) : (
          <span class="worst bad" title={showHidden(worst.text)}>
            {showHidden(worst.text)}
          </span>
        )}
        <span class="end">
          {feedback && <FeedbackMark feedback={feedback} />}
          <Sparkline tools={tools} />
          {costUsd !== undefined && <span>{formatCost(costUsd)}</span>}
          <span>{formatDuration(lastAt - startedAt)}</span>
        </span>
      </span>
    </button>
  )
}

/** What people said of the run: its scores, or how many notes. */
function FeedbackMark({
  feedback: { count, lowest, highest },
}: Required<Pick<RunRow, 'feedback'>>): JSX.Element {
  const scores = lowest === undefined ? [] : [...new Set([lowest, highest!])].map(formatScore)
  const said = scores.length === 0 ? '' : `, score ${scores.join(' to ')}`
  return (
    <span title={`feedback: ${count}${said}`}>
      <span aria-hidden="true">★ {scores.join('–') || count}</span>
      <span class="hidden-visually">
        feedback: {count}
        {said}
      </span>
    </span>
  )
}

function formatScore(score: number): string {
  return String(Number(score.toPrecision(3)))
}

function countThings(count: number, thing: string): string {
  return `${count.toLocaleString('en')} ${thing}${count === 1 ? '' : 's'}`
}

/** As many calls have a mark; of more, the last ones. */
const maxMarks = 24

/** A mark for each tool call: taller where it failed, hollow while it goes on. */
function Sparkline({ tools }: Pick<RunRow, 'tools'>): JSX.Element | null {
  if (tools.length === 0) return null
  const failures = tools.filter(({ outcome }) => toneOfOutcome(outcome) === 'bad').length
  const shown = tools.slice(-maxMarks)
  const words = `${countThings(tools.length, 'tool call')}, ${failures} of them without success`
  return (
    <svg class="spark" width={shown.length * 3} height="12" role="img" aria-label={words}>
      <title>{words}</title>
      {shown.map(({ outcome }, index) => {
        const tone = toneOfOutcome(outcome)
        const height = tone === 'bad' ? 12 : outcome === undefined ? 3 : 6
        return <rect key={index} x={index * 3} y={12 - height} width="2" height={height} class={tone} />
      })}
    </svg>
  )
}
