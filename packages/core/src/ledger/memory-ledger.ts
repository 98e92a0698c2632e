import { type Clock, defaultHost } from '../values/host.ts'
import {
  type AppendOptions,
  closedByUsing,
  type EventQuery,
  type ExpectedHead,
  type Head,
  type Lease,
  type LeaseClaim,
  type OpenLedger,
  type RunFilter,
  type TailCursor,
  type TailedEvent,
  type TakeOverClaim,
} from './ledger.ts'
import type { RuntimeEvent } from '../events/event.ts'
import type { RunId } from '../values/ids.ts'
import { drivenByOther, endsRun, type SessionPlace, takesEntries, unknownCursor } from './append-rules.ts'
import { MemoryHistories, MemoryRun } from './memory-run.ts'
import { LedgerUnavailableError, RunNotFoundError } from '../values/errors.ts'
import {
  answers,
  requireEventQuery,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
} from './queries.ts'
import { anyObject, fields, maybe, requireOptions } from '../values/option.ts'
import { ChangeHints } from './changes.ts'

/** The leases of the runs of a `memoryLedger`. */
class MemoryLeases {
  readonly #clock: Pick<Clock, 'now'>
  readonly #held = new Map<RunId, { readonly holder: string; readonly until: number }>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  of(runId: RunId): Lease | undefined {
    const { holder, until } = this.#held.get(runId) ?? {}
    const leftMs = (until ?? 0) - this.#clock.now()
    return holder !== undefined && leftMs > 0 ? { holder, leftMs } : undefined
  }

  appended(runId: RunId, events: readonly RuntimeEvent[], claim: LeaseClaim | undefined): void {
    if (endsRun(events)) this.#held.delete(runId)
    else if (claim && events.length > 0) this.#give(runId, claim)
  }

  /** Throws where a holder has the run from whom it is not to be taken. */
  acquire(runId: RunId, claim: TakeOverClaim | undefined): void {
    if (claim === undefined) return void this.#held.delete(runId)
    const lease = this.of(runId)
    if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
      throw drivenByOther(runId, lease)
    this.#give(runId, claim)
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): readonly RunId[] {
    const held = runIds.filter((runId) => this.#held.get(runId)?.holder === claim.holder)
    for (const runId of held) this.#give(runId, claim)
    return held
  }

  release(runId: RunId, holder: string): void {
    if (this.#held.get(runId)?.holder === holder) this.#held.delete(runId)
  }

  #give(runId: RunId, { holder, forMs }: LeaseClaim): void {
    this.#held.set(runId, { holder, until: this.#clock.now() + forMs })
  }
}

/** An event of a store. */
interface Place {
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
class EventOrder {
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

/** The runs of one session of a `memoryLedger`. */
class MemorySession {
  readonly #byPlace = new Map<number, MemoryRun>()
  /** In the order of their places. */
  readonly #runs: MemoryRun[] = []

  has(place: number): boolean {
    return this.#byPlace.has(place)
  }

  /** Adds a run at a place that is free. */
  add(run: MemoryRun): this {
    this.#byPlace.set(run.sessionPlace, run)
    const behind = this.#runs.findLastIndex((other) => other.sessionPlace < run.sessionPlace) + 1
    this.#runs.splice(behind, 0, run)
    return this
  }

  /** The last place first, after a run where it is named. `RunNotFoundError` where that one is not in the session. */
  listed(before: RunId | undefined, limit: number): readonly MemoryRun[] {
    const end =
      before === undefined ? this.#runs.length : this.#runs.findIndex(({ runId }) => runId === before)
    if (end < 0) throw new RunNotFoundError(before ?? '')
    return this.#runs.slice(Math.max(0, end - limit), end).toReversed()
  }
}

/** The content of a `memoryLedger`. Appending is synchronous, and so atomic. */
class MemoryStore {
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

  /** Events that are appended after the first one is found are not found. */
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

  /** Events that are appended after the first one is yielded are not yielded. */
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

/** How a ledger in memory is made. */
interface MemoryLedgerOptions {
  /** The clock by which leases of runs end. Default: the host's. */
  readonly clock?: Pick<Clock, 'now'> | undefined
}

const memoryLedgerOptions = fields<MemoryLedgerOptions>({ clock: maybe(anyObject) })

/**
 * A ledger in the memory of this process, which ends with it: for tests, and for runs that need no resume. It keeps
 * every promise of the port but durability: a `barrier` equals a `lazy` append, and `close` forgets everything.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): OpenLedger {
  requireOptions('memoryLedger', memoryLedgerOptions, options)
  const { clock = defaultHost.clock } = options
  const changes = new ChangeHints()
  let store: MemoryStore | undefined = new MemoryStore()
  const leases = new MemoryLeases(clock)

  function openStore(): MemoryStore {
    if (store) return store
    throw new LedgerUnavailableError(
      'This in-memory ledger is closed, and what it held is gone. Make a new one with memoryLedger().',
    )
  }
  /** Yields nothing more once the ledger was closed. */
  function* whileOpen<T>(items: Iterable<T>): Generator<T> {
    for (const item of items) {
      openStore()
      yield item
    }
  }
  function requireRun(runId: RunId): MemoryRun {
    const run = openStore().run(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    return run
  }

  return closedByUsing({
    async append(runId, expected, events, options) {
      const before = openStore().run(runId)?.head.seq
      const head = openStore().append(runId, expected, events, options)
      // An append that was made before, and is recognised, takes no lease from whoever has the run by now.
      if (openStore().run(runId)?.head.seq !== before) leases.appended(runId, events, options.lease)
      changes.notify(runId, takesEntries(options))
      return head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      const run = requireRun(runId)
      leases.acquire(runId, claim)
      const head = run.acquire()
      changes.notify(runId, true)
      return head
    },
    async head(runId) {
      requireTextId('ledger.head', runId)
      return openStore().run(runId)?.head
    },
    async *read(runId, range) {
      requireRead(runId, range)
      yield* whileOpen(openStore().run(runId)?.read(range?.fromSeq, range?.toSeq) ?? [])
    },
    async *find(query = {}) {
      requireEventQuery(query)
      yield* whileOpen(openStore().find(query))
    },
    async *runs(runFilter = {}) {
      requireRunFilter(runFilter)
      for (const { record } of whileOpen(openStore().listed(runFilter))) yield record
    },
    async put(runId, entry) {
      requirePut(runId, entry)
      const isNew = requireRun(runId).put(entry)
      if (isNew) changes.notify(runId, true)
      return isNew
    },
    async inbox(runId) {
      requireTextId('ledger.inbox', runId)
      return openStore().run(runId)?.inbox() ?? []
    },
    async *tail(after) {
      yield* whileOpen(openStore().tail(after))
    },
    changes: (runId, part) => changes.of(runId, part),
    async lease(runId) {
      requireTextId('ledger.lease', runId)
      openStore()
      return leases.of(runId)
    },
    async renew(runIds, claim) {
      openStore()
      return leases.renew(runIds, claim)
    },
    async release(runId, holder) {
      openStore()
      leases.release(runId, holder)
    },
    // Nothing can be removed from it.
    async isWhole(runId) {
      requireTextId('ledger.isWhole', runId)
      return openStore() !== undefined
    },
    async close() {
      store = undefined
      changes.close()
    },
  })
}
