import type { JSX } from 'preact'
import type { RowStatus } from '../../api.ts'

/** How a thing stands: its tone, a sign and words. */
const standings: Readonly<Record<RowStatus, readonly [tone: string, sign: string, words: string]>> = {
  under_way: ['live', '●', 'under way'],
  suspended: ['wait', '◐', 'waits'],
  interrupted: ['bad', '◌', 'interrupted'],
  done: ['good', '✓', 'done'],
  failed: ['bad', '✕', 'failed'],
  unreadable: ['bad', '!', 'unreadable'],
}

export function StatusSign({ status }: { readonly status: RowStatus }): JSX.Element {
  const [tone, sign, words] = standings[status]
  return (
    <span class={`sign ${tone}`} role="img" aria-label={words} title={words}>
      {sign}
    </span>
  )
}

export function StatusBadge({
  status,
  words,
}: {
  readonly status: RowStatus
  readonly words?: string
}): JSX.Element {
  const [tone, sign, usual] = standings[status]
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{sign}</span> {words ?? usual}
    </span>
  )
}

/** Whether an outcome of a call is a good one. */
export function toneOfOutcome(outcome: string | undefined): 'good' | 'bad' | 'wait' | '' {
  if (outcome === undefined) return ''
  if (outcome === 'success') return 'good'
  return outcome === 'repeated' || outcome === 'skipped' ? 'wait' : 'bad'
}
