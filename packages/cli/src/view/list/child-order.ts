import type { RunId } from '@tallystick/core'

/** What stands in a list at its own place, or under the run that it works for. */
export interface Placed {
  readonly runId: RunId
  /** The run that it works for. */
  readonly employer?: RunId
}

/**
 * The same entries with each that works for another under that one, the first that was begun first, and how deep it
 * stands there. One whose employer is not in the list stays where it is, and so do runs that work for one another in a
 * circle, which only a forged ledger holds: none is left out.
 */
export function underEmployers<Entry extends Placed>(
  newestFirst: readonly Entry[],
): readonly (readonly [entry: Entry, depth: number])[] {
  const employers = new Map(newestFirst.map(({ runId, employer }) => [runId, employer]))
  const isBelow = ({ runId, employer }: Entry): boolean =>
    employer !== undefined && employers.has(employer) && !isInCircle(runId, employers)
  const workers = Map.groupBy(newestFirst.filter(isBelow).toReversed(), ({ employer }) => employer)
  const place = (entry: Entry, depth: number): readonly (readonly [Entry, number])[] => [
    [entry, depth],
    ...(workers.get(entry.runId) ?? []).flatMap((worker) => place(worker, depth + 1)),
  ]
  return newestFirst.filter((entry) => !isBelow(entry)).flatMap((entry) => place(entry, 0))
}

/** Whether a run works for itself, through whichever others. */
function isInCircle(runId: RunId, employers: ReadonlyMap<RunId, RunId | undefined>): boolean {
  const seen = new Set<RunId>()
  for (let at = employers.get(runId); at !== undefined && !seen.has(at); at = employers.get(at)) {
    if (at === runId) return true
    seen.add(at)
  }
  return false
}
