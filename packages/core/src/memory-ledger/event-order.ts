import type { MemoryRun } from './memory-run.ts'

/** An event of a store. */
export interface Place {
  readonly run: MemoryRun
  readonly seq: number
}

/** Events of one append. */
interface Appended {
  readonly run: MemoryRun
  /** The number of the first of them in its run. */
  readonly fromSeq: number
  /** How many events were appended before them, to any run. */
  readonly before: number
}

/** The order in which events were appended, over all runs: one entry for each append. */
export class EventOrder {
  readonly #appends: Appended[] = []
  #length = 0

  /** How many events there are. */
  get length(): number {
    return this.#length
  }

  /** Adds events of one append: `count` of them, the first at `fromSeq` of its run. */
  add(run: MemoryRun, fromSeq: number, count: number): void {
    if (count === 0) return
    this.#appends.push({ run, fromSeq, before: this.#length })
    this.#length += count
  }

  /** Returns the event at an index, counted from 0; `undefined` past the end. */
  at(index: number): Place | undefined {
    if (!(index >= 0 && index < this.#length)) return undefined
    const { run, fromSeq, before } = this.#appends[this.#appendOf(index)] as Appended
    return { run, seq: fromSeq + index - before }
  }

  /** Yields the events from one index to another, without the last. */
  *between(from: number, to: number): Generator<Place> {
    for (let index = from, append = this.#appendOf(from); index < to; append++) {
      const { run, fromSeq, before } = this.#appends[append] as Appended
      const end = Math.min(to, this.#appends[append + 1]?.before ?? to)
      for (; index < end; index++) yield { run, seq: fromSeq + index - before }
    }
  }

  /** Returns the index of the append that an event came with. */
  #appendOf(index: number): number {
    let [low, high] = [0, this.#appends.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#appends[middle] as Appended).before <= index) low = middle
      else high = middle - 1
    }
    return low
  }
}
