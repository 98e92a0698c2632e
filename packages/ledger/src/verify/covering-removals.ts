import type { RuntimeEvent } from '@tallystick/core'
import { fault, type Fault } from '../record/link-check.ts'
import type { StoredRemoval } from '../record/removal.ts'

interface Range {
  readonly fromSeq: number
  toSeq: number
}

/** The events of a run that removals say are gone, asked for in order of seq. Holds ranges, not events. */
export class CoveringRemovals {
  readonly #ranges: readonly Range[]
  #next = 0

  private constructor(ranges: readonly Range[]) {
    this.#ranges = ranges
  }

  static async of(removals: AsyncIterable<StoredRemoval>): Promise<CoveringRemovals> {
    const given: Range[] = []
    for await (const { fromSeq, toSeq } of removals) given.push({ fromSeq, toSeq })
    const ranges: Range[] = []
    for (const { fromSeq, toSeq } of given.toSorted((left, right) => left.fromSeq - right.fromSeq)) {
      const last = ranges.at(-1)
      if (last && fromSeq <= last.toSeq + 1) last.toSeq = Math.max(last.toSeq, toSeq)
      else ranges.push({ fromSeq, toSeq })
    }
    return new CoveringRemovals(ranges)
  }

  /** The fault of a segment whose removal is on record, and did not happen or was undone: what it covers is there. */
  faultOf([first]: readonly RuntimeEvent[]): Fault | undefined {
    return first && this.#covers(first.seq) && !isGone(first)
      ? fault('payload', 'none, since a removal covers it', 'a payload')
      : undefined
  }

  #covers(seq: number): boolean {
    let range = this.#ranges[this.#next]
    while (range && range.toSeq < seq) range = this.#ranges[++this.#next]
    return range !== undefined && range.fromSeq <= seq
  }
}

/** What is sealed is there, even where its key is not. */
function isGone({ removed }: RuntimeEvent): boolean {
  return removed !== undefined && removed.kind !== 'sealed' && removed.kind !== 'erased'
}
