import type { JSX } from 'preact'
import { LongText } from './text.tsx'

/** Two texts, cut to the lines between their first and their last difference. */
export function cutToChange(
  before: string,
  after: string,
): { readonly before: string; readonly after: string } {
  const [old, young] = [before.split('\n'), after.split('\n')]
  const shortest = Math.min(old.length, young.length)
  let from = 0
  while (from < shortest && old[from] === young[from]) from++
  let end = 0
  while (end < shortest - from && old.at(-1 - end) === young.at(-1 - end)) end++
  return {
    before: old.slice(from, old.length - end).join('\n'),
    after: young.slice(from, young.length - end).join('\n'),
  }
}

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
