import { LedgerConflictError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { emptyHead } from '@tallystick/core/store-kit'
import { type Head } from '@tallystick/core/vocabulary'
import { EventAudit } from '../verify/event-audit.ts'
import { exportedLine } from './export-events.ts'
import { damagedLine, type ImportedLine } from './import-line.ts'
import type { ImportWriter } from './import-writer.ts'
import { recordedEvents } from '../store/read-events.ts'
import { internalsOf } from '../store/internals.ts'

/** A run with more take-overs that wrote no event is no real run. */
const maxEmptyEpochs = 10_000

/** So many take-overs are made at once: they share a commit. */
const takeOversAtOnce = 250

/** Brings the events of one run into a ledger, one after the other, each checked before it is written. */
export class RunImport {
  readonly runId: RunId
  readonly #ledger: Ledger
  readonly #writer: ImportWriter
  /** What the ledger holds of the run already. */
  readonly #present: AsyncGenerator<RuntimeEvent>
  readonly #head: Head
  readonly #keepsVersions: boolean
  readonly #laws = new EventAudit()
  #epoch: number
  /** Writers that took over and wrote nothing. */
  #emptyEpochs = 0
  #seq = 0
  #added = 0

  private constructor(ledger: Ledger, writer: ImportWriter, runId: RunId, head: Head) {
    this.runId = runId
    this.#ledger = ledger
    this.#writer = writer
    this.#head = head
    this.#epoch = head.epoch
    this.#present = recordedEvents(ledger, runId)
    this.#keepsVersions = internalsOf(ledger) !== undefined
  }

  static async begin(ledger: Ledger, writer: ImportWriter, runId: RunId): Promise<RunImport> {
    // Earlier lines of the file may be of the same run: they have to be written before its head is read.
    await writer.flush()
    return new RunImport(ledger, writer, runId, (await ledger.head(runId)) ?? emptyHead)
  }

  /** Events that were appended. */
  get added(): number {
    return this.#added
  }

  /** Events that stood in the ledger already. */
  get present(): number {
    return this.#seq - this.#added
  }

  /**
   * Imports the next event. Throws a `LedgerDamagedError` where it cannot be the next one, and a `LedgerConflictError`
   * where the ledger holds another one in its place.
   */
  async add(line: ImportedLine): Promise<void> {
    // A ledger that brings no event to its newest version when it is read gets it in that version.
    const event = this.#keepsVersions ? line.recorded : line.event
    this.#requireSound(line)
    if (event.seq <= this.#head.seq) await this.#requireSame(event)
    else {
      await this.#takeOver(line)
      await this.#writer.add(event, line.length)
      this.#added += 1
    }
    this.#seq = event.seq
  }

  /** Releases what the ledger lent. */
  async end(): Promise<void> {
    await this.#present.return(undefined)
  }

  #requireSound({ line, event }: ImportedLine): void {
    const { runId, seq, epoch, type } = event
    const due = this.#seq + 1
    if (seq !== due)
      throw damagedLine(line, `it holds event ${seq} of run ${runId} where event ${due} is due.`)
    if (seq === 1 && epoch !== emptyHead.epoch) {
      throw damagedLine(line, `run ${runId} begins with the epoch ${epoch}, and every run begins with 1.`)
    }
    const fault = this.#laws.faultOf(event)
    if (fault === undefined) return
    throw damagedLine(line, `event ${seq} (${type}) of run ${runId} breaks ${fault.what}: ${fault.found}.`)
  }

  async #requireSame(recorded: RuntimeEvent): Promise<void> {
    const { value: present } = await this.#present.next()
    if (present !== undefined && exportedLine(present) === exportedLine(recorded)) return
    throw new LedgerConflictError(
      'seq',
      `Event ${recorded.seq} of run ${this.runId} in this ledger differs from the imported one: two records ` +
        'claim to be the same run. Nothing of the run was changed. Import it into a ledger without that run, and compare the two.',
    )
  }

  /** Makes the take-overs of the run's past again, so that the ledger knows its writers as the first one did. */
  async #takeOver({ line, recorded: { seq, epoch } }: ImportedLine): Promise<void> {
    if (epoch < this.#epoch) {
      throw new LedgerConflictError(
        'epoch',
        `Run ${this.runId} ends at event ${this.#seq} in this ledger, and was taken over since, by writer ` +
          `${this.#epoch}: event ${seq} of the imported lines, by writer ${epoch}, cannot follow any more. Import into another ledger.`,
      )
    }
    if (epoch === this.#epoch) return
    this.#emptyEpochs += epoch - this.#epoch - 1
    if (this.#emptyEpochs > maxEmptyEpochs) {
      throw damagedLine(
        line,
        `the epoch rises from ${this.#epoch} to ${epoch} at event ${seq}, and no run is taken over so often.`,
      )
    }
    await this.#writer.flush()
    while (this.#epoch < epoch) {
      const length = Math.min(epoch - this.#epoch, takeOversAtOnce)
      const heads = await Promise.all(Array.from({ length }, () => this.#ledger.acquire(this.runId)))
      this.#epoch = Math.max(...heads.map((head) => head.epoch))
    }
  }
}
