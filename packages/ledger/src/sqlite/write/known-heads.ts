import type { RunCell } from '../../record/chain.ts'
import type { Remembered } from './transactions.ts'

/** More runs than a process drives at a time. */
const maxRuns = 4_096

/**
 * The rows of runs as this connection wrote them last, and the last place that it gave to an event, so that an append need
 * not ask for them. Whatever another connection commits changes the version of the data, and lets all of it be read anew.
 */
export class KnownHeads implements Remembered {
  readonly #cells = new Map<string, RunCell>()
  #lastPlace: number | undefined
  #version: number | undefined

  /** The place of the last event of the file; `undefined` where it has to be read. */
  get lastPlace(): number | undefined {
    return this.#lastPlace
  }

  /** The row of a run; `undefined` where it has to be read. */
  get(runId: string): RunCell | undefined {
    return this.#cells.get(runId)
  }

  begun(version: number): void {
    if (version !== this.#version) this.forgetAll()
    this.#version = version
  }

  undone(): void {
    this.forgetAll()
  }

  /** To be called within the transaction that writes the row and, at this place, the last event. */
  wrote(cell: RunCell, lastPlace: number): void {
    this.#lastPlace = lastPlace
    this.#cells.delete(cell.runId)
    // The bytes of a hash share memory with others, which would stay with them.
    this.#cells.set(cell.runId, { ...cell, headHash: new Uint8Array(cell.headHash) })
    if (this.#cells.size <= maxRuns) return
    const [oldest] = this.#cells.keys()
    if (oldest !== undefined) this.#cells.delete(oldest)
  }

  /** To be called by all else that writes the row of a run. */
  forget(runId: string): void {
    this.#cells.delete(runId)
  }

  forgetAll(): void {
    this.#cells.clear()
    this.#lastPlace = undefined
  }
}
