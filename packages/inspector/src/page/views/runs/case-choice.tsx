import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type Choice, ticked } from '../../state/cases.ts'
import { readQuery } from '../../state/runs.ts'
import { hits } from '../../state/search.ts'
import { DatasetDialog } from '../actions/dataset-dialog.tsx'

/** Chooses runs of the list to make cases of: those that are ticked, or all of them. */
export function CaseChoice(): JSX.Element {
  const [choice, setChoice] = useState<Choice | undefined>(undefined)
  const found = hits.value && [...new Set(hits.value.map(({ runId }) => runId))]
  const run = found ?? [...(ticked.value ?? [])]
  const { limit: _, ...query } = readQuery()
  return (
    <div class="case-choice" role="group" aria-label="Cases for an evaluation">
      <p class="soft hint">
        {found ? 'Take the runs of these events.' : 'Tick runs, or take all that the filters let through.'}
      </p>
      <button
        type="button"
        class="primary"
        disabled={found?.length === 0}
        onClick={() => setChoice(run.length > 0 ? { run } : query)}
      >
        {run.length > 0 ? `Take ${run.length}…` : 'Take all…'}
      </button>
      <button type="button" onClick={() => (ticked.value = undefined)}>
        Cancel
      </button>
      {choice && <DatasetDialog choice={choice} onClose={() => setChoice(undefined)} />}
    </div>
  )
}
