import type { RuntimeEvent } from '@tallystick/core'
import { EventAudit, RecordCheck } from '@tallystick/ledger/record'
import type { RecordFault, RecordRow } from '../../api.ts'
import type { RunModel } from './run-model.ts'

/** Events of one kind, as ranges of their numbers. */
export type Ranges = readonly (readonly [from: number, to: number])[]

/** How far a run was verified in the page. */
export interface Trust {
  /** Events whose row is as it was written, and says what is shown; from the first on. */
  readonly verified: number
  /** Events that were to be verified. */
  readonly of: number
  readonly isDone: boolean
  readonly fault?: RecordFault
  readonly lastHash?: string
  /** Content that is not there: why, and of which events. */
  readonly removed: readonly {
    readonly kind: string
    readonly by?: string
    readonly at?: number
    readonly reason?: string
    readonly events: Ranges
  }[]
  /** Encrypted rows, of which only the facts in the open were compared. */
  readonly sealed: Ranges
  /** Why only the laws were checked: the rows of the record are not to be had. */
  readonly lawsOnly?: string
  /** The epoch of the last event: each process that drives the run raises it. */
  readonly epochs: number
}

const eventsAtOnce = 200

/** Reads the rows after an event; none after the last one. Rejects with why there are none to be had. */
export type ReadRows = (after: number) => Promise<readonly RecordRow[]>

/**
 * Checks every row of a run against the chain of hashes, the events of the page, and the laws, as far as the run is known; later events
 * when it is told to continue. Where the rows are not to be had, as of a ledger in memory, it checks only the laws.
 */
export class RecordVerifier {
  readonly #model: RunModel
  readonly #readRows: ReadRows
  readonly #onProgress: (trust: Trust) => void
  readonly #check = new RecordCheck()
  readonly #laws = new EventAudit()
  readonly #sealed: number[] = []
  /** Events whose laws were checked without their rows. */
  #lawful = 0
  #lawsOnly: string | undefined
  #lastHash: string | undefined
  #isBusy = false
  #isOver = false

  constructor(model: RunModel, readRows: ReadRows, onProgress: (trust: Trust) => void) {
    this.#model = model
    this.#readRows = readRows
    this.#onProgress = onProgress
  }

  stop(): void {
    this.#isOver = true
  }

  /** Verifies what has come since. */
  async continue(): Promise<void> {
    if (this.#isBusy || this.#isOver) return
    this.#isBusy = true
    const fault = await this.#verify()
    this.#isBusy = false
    if (this.#isOver) return
    this.#isOver = fault !== undefined
    this.#report(true, fault)
  }

  get #verified(): number {
    return this.#lawsOnly === undefined ? this.#check.rows : this.#lawful
  }

  async #verify(): Promise<RecordFault | undefined> {
    const { events } = this.#model
    while (this.#verified < events.length && !this.#isOver) {
      const fault = this.#lawsOnly === undefined ? await this.#verifyRows() : this.#auditLaws()
      if (fault) return fault
    }
    return undefined
  }

  async #verifyRows(): Promise<RecordFault | undefined> {
    const { events } = this.#model
    let rows: readonly RecordRow[]
    try {
      rows = await this.#readRows(this.#check.rows)
    } catch (error) {
      this.#lawsOnly = error instanceof Error ? error.message : String(error)
      return undefined
    }
    const seq = this.#check.rows + 1
    if (rows.length === 0) return { seq, what: 'row', expected: `the row of event ${seq}`, found: 'none' }
    for (const row of rows) {
      if (this.#check.rows === events.length || this.#isOver) break
      const checked = this.#check.check(row, events[this.#check.rows]!)
      if ('fault' in checked) return { seq: this.#check.rows + 1, ...checked.fault }
      this.#lastHash = row.hash
      if (checked.content === 'sealed') this.#sealed.push(row.seq)
      if (this.#check.rows % eventsAtOnce > 0) continue
      this.#report(false)
      // Lets the worker answer what else the page asks.
      await new Promise((resolve) => setTimeout(resolve))
    }
    return undefined
  }

  #auditLaws(): RecordFault | undefined {
    const fault = this.#laws.check(this.#model.events[this.#lawful]!)
    if (fault) return { seq: this.#lawful + 1, ...fault }
    this.#lawful++
    return undefined
  }

  #report(isDone: boolean, fault?: RecordFault): void {
    const { events } = this.#model
    this.#onProgress({
      verified: this.#verified,
      of: events.length,
      isDone,
      ...(fault && { fault }),
      ...(this.#lastHash !== undefined && { lastHash: this.#lastHash }),
      ...(this.#lawsOnly !== undefined && { lawsOnly: this.#lawsOnly }),
      removed: listRemoved(events),
      sealed: toRanges(this.#sealed),
      epochs: events.at(-1)?.epoch ?? 0,
    })
  }
}

/** Numbers in ascending order as ranges. */
export function toRanges(numbers: readonly number[]): Ranges {
  const ranges: [number, number][] = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last && last[1] === number - 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges
}

function listRemoved(events: readonly RuntimeEvent[]): Trust['removed'] {
  const byWhy = Map.groupBy(
    events.filter(({ removed }) => removed !== undefined),
    ({ removed }) => JSON.stringify(removed),
  )
  return [...byWhy.values()].map((gone) => ({
    ...gone[0]!.removed!,
    events: toRanges(gone.map(({ seq }) => seq)),
  }))
}
