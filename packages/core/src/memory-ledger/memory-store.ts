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
import { answers } from './event-query.ts'
import { MemoryHistories } from './memory-histories.ts'
import { MemoryRun } from './memory-run.ts'
import { MemorySession } from './memory-session.ts'
import { unknownCursor } from './unknown-cursor.ts'

interface Place {
  readonly run: MemoryRun
  readonly seq: number
}

/** What a `memoryLedger` holds. Appending is synchronous, and so atomic. */
export class MemoryStore {
  /** In the order in which they were made. */
  readonly #runs = new Map<RunId, MemoryRun>()
  readonly #sessions = new Map<string, MemorySession>()
  readonly #histories = new MemoryHistories()
  /** Every event, in the order of appends. */
  readonly #places: Place[] = []

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
    for (let seq = before + 1; seq <= run.head.seq; seq++) this.#places.push({ run, seq })
    if (head.seq > 0) this.#runs.set(runId, run)
    const { sessionId } = run.record
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
    const run = runId === undefined ? undefined : this.run(runId)
    const end = runId === undefined ? this.#places.length : (run?.head.seq ?? 0)
    for (let index = 0; index < end; index++) {
      const place = run ? { run, seq: index + 1 } : this.#places[index]
      if (!place || (sessionId !== undefined && place.run.record.sessionId !== sessionId)) continue
      for (const event of place.run.read(place.seq, place.seq)) if (answers(event, query)) yield event
    }
  }

  /** What is appended from the first event on is not yielded. */
  *tail(after?: TailCursor): Generator<TailedEvent> {
    const begin = after === undefined ? 0 : this.#placeOf(after)
    const end = this.#places.length
    for (let index = begin; index < end; index++) {
      const place = this.#places[index] as Place
      for (const event of place.run.read(place.seq, place.seq))
        yield { cursor: cursorOf(place, index), event }
    }
  }

  /** Returns the number of events up to a cursor. */
  #placeOf(cursor: TailCursor): number {
    const index = Number.parseInt(cursor) - 1
    const place = this.#places[index]
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
