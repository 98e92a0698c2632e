import type { RunId, RuntimeEvent } from '@tallystick/core'
import type { EventType } from '@tallystick/core/vocabulary'
import { fault, type Fault } from '../record/link-check.ts'
import { EventAudit } from './event-audit.ts'
import type { Progress } from './progress.ts'

/** The types of which neighbours are audited together: of these events no more is known than what the state says. */
const deltaTypes: ReadonlySet<string> = new Set<EventType>([
  'assistant_text_delta',
  'assistant_reasoning_delta',
  'tool_input_delta',
])

/** The most deltas that wait to be audited together. */
const maxDeltas = 256

/** An audit of the events of one run, which come one by one from any ledger. */
export class EventWalk {
  readonly #runId: RunId
  readonly #progress: Progress
  readonly #laws = new EventAudit()
  /** Events of one type that were not audited yet. */
  #deltas: RuntimeEvent[] = []
  /** Of the last sound event. */
  epoch = 0

  constructor(runId: RunId, progress: Progress) {
    this.#runId = runId
    this.#progress = progress
  }

  /** Takes the next event. Returns false where the run is broken: the progress says where. */
  add(event: RuntimeEvent): boolean {
    const { seq, runId, type } = event
    const due = this.#progress.events + this.#deltas.length + 1
    if (seq !== due || runId !== this.#runId) {
      const found = fault('seq', `${due} of run ${this.#runId}`, `${seq} of run ${runId}`)
      return this.end() && this.#break(due, found)
    }
    const [first] = this.#deltas
    const isOther = first !== undefined && (first.type !== type || this.#deltas.length === maxDeltas)
    if (isOther && !this.end()) return false
    if (!deltaTypes.has(type)) return this.#take(event)
    this.#deltas.push(event)
    return true
  }

  /** Audits what waits for more of its kind. Returns false where the run is broken. */
  end(): boolean {
    const deltas = this.#deltas
    this.#deltas = []
    const last = deltas.at(-1)
    if (last === undefined) return true
    if (deltas.length === 1 || !this.#laws.takeDeltas(deltas))
      return deltas.every((delta) => this.#take(delta))
    this.#progress.events += deltas.length
    this.#progress.hasEnded = false
    this.epoch = last.epoch
    return true
  }

  #take(event: RuntimeEvent): boolean {
    const progress = this.#progress
    const broken = this.#laws.faultOf(event)
    if (broken) return this.#break(progress.events + 1, broken)
    progress.family.handle(event)
    progress.hasEnded = event.type === 'run_finished'
    progress.events++
    this.epoch = event.epoch
    return true
  }

  #break(seq: number, found: Fault): false {
    this.#progress.broken = { seq, ...found }
    return false
  }
}
