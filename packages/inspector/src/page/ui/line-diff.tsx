import type { JSX } from 'preact'
import { cutToChange } from './changed-lines.ts'
import { LongText } from './text.tsx'

/** What went and what came, each with a sign. */
export function LineDiff({
  before,
  after,
}: {
  readonly before: string
  readonly after: string
}): JSX.Element {
  const change = cutToChange(before, after)
  return (
    <div class="line-diff">
      {change.before !== '' && (
        <del>
          <span aria-hidden="true">−</span>
          <div>
            <LongText text={change.before} />
          </div>
        </del>
      )}
      {change.after !== '' && (
        <ins>
          <span aria-hidden="true">+</span>
          <div>
            <LongText text={change.after} />
          </div>
        </ins>
      )}
    </div>
  )
}
