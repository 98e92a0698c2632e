import { RunNotFoundError } from '../vocabulary/errors.ts'
import type {
  AppendOptions,
  EventQuery,
  ExpectedHead,
  Head,
  RunFilter,
  TailCursor,
  TailedEvent,
} from '../ports/ledger.ts'
import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import type { SessionPlace } from './append-rules.ts'
import { EventOrder, type Place } from './event-order.ts'
import { answers } from './event-query.ts'
import { MemoryHistories } from './memory-histories.ts'
import { MemoryRun } from './memory-run.ts'
import { MemorySession } from './memory-session.ts'
import { unknownCursor } from './unknown-cursor.ts'

/** What a `memoryLedger` holds. Appending is synchronous, and so atomic. */
export class MemoryStore {
  /** In the order in which they were made. */
  readonly #runs = new Map<RunId, MemoryRun>()
  readonly #sessions = new Map<string, MemorySession>()
  readonly #histories = new MemoryHistories()
  readonly #order = new EventOrder()

  run(runId: RunId): MemoryRun | undefined {
    return this.#runs.get(runId)
  }

  append(
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
  ): Head {
    const run = this.run(runId) ?? new MemoryRun(runId, this.#histories)
    const before = run.head.seq
    const head = run.append(expected, events, options, (place) => this.#isTaken(place))
    this.#order.add(run, before + 1, run.head.seq - before)
    if (head.seq > 0) this.#runs.set(runId, run)
    const { sessionId } = run
    if (sessionId !== undefined && before === 0)
      this.#sessions.set(sessionId, this.#session(sessionId).add(run))
    return head
  }

  /** Runs as a list shows them. `RunNotFoundError` where it is to begin after one that is not in it. */
  listed({ sessionId, before, limit = Infinity }: RunFilter): readonly MemoryRun[] {
    if (sessionId !== undefined) return this.#session(sessionId).listed(before, limit)
    const all = [...this.#runs.values()].toReversed()
    const from = before === undefined ? 0 : all.findIndex(({ runId }) => runId === before) + 1
    if (before !== undefined && from === 0) throw new RunNotFoundError(before)
    return all.slice(from, from + limit)
  }

  /** What is appended from the first event on is not found. */
  *find(query: EventQuery): Generator<RuntimeEvent> {
    const { runId, sessionId } = query
    for (const { run, seq } of runId === undefined
      ? this.#order.between(0, this.#order.length)
      : this.#placesOf(runId)) {
      if (sessionId !== undefined && run.sessionId !== sessionId) continue
      for (const event of run.read(seq, seq)) if (answers(event, query)) yield event
    }
  }

  *#placesOf(runId: RunId): Generator<Place> {
    const run = this.run(runId)
    if (run === undefined) return
    const end = run.head.seq
    for (let seq = 1; seq <= end; seq++) yield { run, seq }
  }

  /** What is appended from the first event on is not yielded. */
  *tail(after?: TailCursor): Generator<TailedEvent> {
    let index = after === undefined ? 0 : this.#placeOf(after)
    for (const place of this.#order.between(index, this.#order.length)) {
      for (const event of place.run.read(place.seq, place.seq))
        yield { cursor: cursorOf(place, index), event }
      index++
    }
  }

  /** Returns the number of events up to a cursor. */
  #placeOf(cursor: TailCursor): number {
    const index = Number.parseInt(cursor) - 1
    const place = this.#order.at(index)
    if (place === undefined || cursor !== cursorOf(place, index)) throw unknownCursor(cursor)
    return index + 1
  }

  #session(sessionId: string): MemorySession {
    return this.#sessions.get(sessionId) ?? new MemorySession()
  }

  #isTaken({ sessionId, sessionPlace }: SessionPlace): boolean {
    return this.#session(sessionId).has(sessionPlace)
  }
}

function cursorOf({ run, seq }: Place, index: number): TailCursor {
  return `${index + 1}-${seq}-${run.runId}`
}
