import type { RuntimeEvent } from '../events/event.ts'
import { LedgerUnavailableError, RunNotFoundError } from '../values/errors.ts'
import { type Clock, defaultHost } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import { toCanonicalJson, deepFreeze, isFrozenOnce, isJson } from '../values/json.ts'
import { anyObject, fields, maybe, requireOptions } from '../values/option.ts'
import {
  createDrivenByOtherError,
  emptyHead,
  createEndedError,
  endsRun,
  deriveOnceKey,
  createPlaceTakenError,
  requireHead,
  requireInboxKey,
  requireWellFormed,
  createSecondFactError,
  type SessionPlace,
  readSessionPlace,
  toStorableText,
  hintsInbox,
  createUnknownCursorError,
  createUnreadInboxError,
} from './append-rules.ts'
import { ChangeHints } from './changes.ts'
import {
  closeByUsing,
  type DueFilter,
  type DueRun,
  type Head,
  type InboxEntry,
  type Lease,
  type LeaseClaim,
  type OpenLedger,
  type RunFilter,
  type TailCursor,
} from './ledger.ts'
import {
  matchesQuery,
  requireDueFilter,
  requireEventQuery,
  refuseTransaction,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
  toDueAt,
} from './queries.ts'

class MemoryRun {
  readonly runId: RunId
  /** Frozen, so that callers who hold one cannot change the record. */
  readonly events: RuntimeEvent[] = []
  readonly onceKeys: Set<string> = new Set()
  /** The entries that were not taken, as text. */
  readonly inbox: Map<string, string> = new Map()
  /** The keys of all that were ever put. */
  readonly inboxKeys: Set<string> = new Set()
  epoch: number = emptyHead.epoch
  place: SessionPlace | undefined
  lease: { readonly holder: string; readonly until: number } | undefined
  /** As `RunLeases` says; undefined for never. */
  dueAt: number | undefined = 0

  constructor(runId: RunId) {
    this.runId = runId
  }

  get head(): Head {
    return { seq: this.events.length, epoch: this.epoch }
  }
}

/** The content of a `memoryLedger`. */
class MemoryStore {
  /** In the order in which they were made. */
  readonly runs: Map<RunId, MemoryRun> = new Map()
  /** The runs of each session, in the order of their places. */
  readonly sessions: Map<string, MemoryRun[]> = new Map()
  /** The events of all runs, in the order in which they were appended. */
  readonly events: RuntimeEvent[] = []

  /** Runs as a list shows them. `RunNotFoundError` where it is to begin after one that is not in it. */
  listed({ sessionId, before, limit = Infinity }: RunFilter): readonly MemoryRun[] {
    const all = sessionId === undefined ? [...this.runs.values()] : (this.sessions.get(sessionId) ?? [])
    const end = before === undefined ? all.length : all.findIndex(({ runId }) => runId === before)
    if (end < 0) throw new RunNotFoundError(before ?? '')
    return all.slice(Math.max(0, end - limit), end).toReversed()
  }

  /** Idle runs that are due, in order. `RunNotFoundError` where they are to begin after one that is not there. */
  due({ before, after }: DueFilter, isIdle: (run: MemoryRun) => boolean): readonly DueRun[] {
    const all = [...this.runs.values()]
    const last = all.findIndex(({ runId }) => runId === after?.runId)
    if (after && last < 0) throw new RunNotFoundError(after.runId)
    const isNext = (dueAt: number, place: number): boolean =>
      after === undefined || dueAt > after.dueAt || (dueAt === after.dueAt && place > last)
    return all
      .flatMap((run, place) => {
        const { runId, dueAt } = run
        const isDue = dueAt !== undefined && dueAt <= before && isNext(dueAt, place) && isIdle(run)
        return isDue ? [{ runId, dueAt }] : []
      })
      .toSorted((left, right) => left.dueAt - right.dueAt)
  }

  countUpTo(cursor: TailCursor): number {
    const count = Number.parseInt(cursor)
    const event = this.events[count - 1]
    if (event === undefined || cursor !== toCursor(count, event)) throw createUnknownCursorError(cursor)
    return count
  }
}

function toCursor(count: number, { seq, runId }: RuntimeEvent): TailCursor {
  return `${count}-${seq}-${runId}`
}

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

  function openStore(): MemoryStore {
    if (store) return store
    throw new LedgerUnavailableError(
      'This in-memory ledger is closed, and its content is gone. Create another with memoryLedger().',
    )
  }
  /** Yields the events that are there when the first is asked for, and nothing more once the ledger was closed. */
  function* upToNow(events: readonly RuntimeEvent[], from = 0, to = Infinity): Generator<RuntimeEvent> {
    const end = Math.min(to, events.length)
    for (let index = from; index < end; index++) {
      openStore()
      yield events[index] as RuntimeEvent
    }
  }
  function requireRun(runId: RunId): MemoryRun {
    const run = openStore().runs.get(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    return run
  }
  function findLease({ lease }: MemoryRun): Lease | undefined {
    const leftMs = (lease?.until ?? 0) - clock.now()
    return lease && leftMs > 0 ? { holder: lease.holder, leftMs } : undefined
  }
  function giveLease(run: MemoryRun, { holder, forMs }: LeaseClaim): void {
    run.lease = { holder, until: clock.now() + forMs }
  }
  /** Makes a run due at once, unless it has ended. */
  function wake(run: MemoryRun | undefined): void {
    if (run && !hasEnded(run)) run.dueAt = 0
  }

  return closeByUsing({
    // Synchronous, and so atomic: nothing is changed before everything is checked.
    async append(runId, expected, events, options) {
      const { runs, sessions, events: all } = openStore()
      requireWellFormed(runId, expected, events)
      const kept = events.map(keepEvent)
      const run = runs.get(runId) ?? new MemoryRun(runId)
      const { expectedSeq, epoch } = expected
      if (
        kept.length > 0 &&
        kept.every((event, index) => isSameEvent(event, run.events[expectedSeq + index]))
      )
        // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
        return { seq: expectedSeq + events.length, epoch }
      requireHead(runId, run.head, expected)
      const onceKeys = new Set<string>()
      for (const event of events) {
        const key = deriveOnceKey(event)
        if (key === undefined) continue
        if (run.onceKeys.has(key) || onceKeys.has(key)) throw createSecondFactError(runId, key)
        onceKeys.add(key)
      }
      const { consumedInboxKeys = [], lease, wakes } = options
      const ends = endsRun(events)
      const taken = new Set(consumedInboxKeys)
      if (ends && [...run.inbox.keys()].some((key) => !taken.has(key))) throw createUnreadInboxError(runId)
      const place = expectedSeq === 0 ? readSessionPlace(events) : undefined
      if (place) {
        const session = sessions.get(place.sessionId) ?? []
        if (session.some((other) => other.place?.sessionPlace === place.sessionPlace))
          throw createPlaceTakenError(runId, place)
        run.place = place
        const behind = session.findLastIndex((other) => getPlace(other) < place.sessionPlace) + 1
        sessions.set(place.sessionId, session.toSpliced(behind, 0, run))
      }
      for (const event of kept) {
        run.events.push(event)
        all.push(event)
      }
      if (kept.length > 0) runs.set(runId, run)
      for (const key of onceKeys) run.onceKeys.add(key)
      for (const key of taken) run.inbox.delete(key)
      if (ends) run.lease = run.dueAt = undefined
      else if (lease && kept.length > 0) giveLease(run, lease)
      if (wakes !== undefined && kept.length > 0) wake(runs.get(wakes))
      changes.notify(runId, hintsInbox(expected, options))
      return run.head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      const run = requireRun(runId)
      const lease = claim && findLease(run)
      if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
        throw createDrivenByOtherError(runId, lease)
      if (claim) giveLease(run, claim)
      else run.lease = undefined
      run.epoch++
      wake(run)
      changes.notify(runId, true)
      return run.head
    },
    async head(runId) {
      requireTextId('ledger.head', runId)
      return openStore().runs.get(runId)?.head
    },
    async *read(runId, range) {
      requireRead(runId, range)
      const { fromSeq = 1, toSeq } = range ?? {}
      yield* upToNow(openStore().runs.get(runId)?.events ?? [], Math.max(0, fromSeq - 1), toSeq)
    },
    async *find(query = {}) {
      requireEventQuery(query)
      const { runs, events } = openStore()
      const { runId, sessionId } = query
      for (const event of upToNow(runId === undefined ? events : (runs.get(runId)?.events ?? []))) {
        const isOfSession = sessionId === undefined || runs.get(event.runId)?.place?.sessionId === sessionId
        if (isOfSession && matchesQuery(event, query)) yield event
      }
    },
    async *runs(runFilter = {}) {
      requireRunFilter(runFilter)
      for (const { runId, head, place } of openStore().listed(runFilter)) {
        openStore()
        yield { runId, head, ...place }
      }
    },
    async *due(filter) {
      requireDueFilter(filter)
      const idle = openStore().due(filter, (run) => findLease(run) === undefined)
      for (const due of idle.slice(0, filter.limit)) {
        openStore()
        yield due
      }
    },
    async put(runId, entry, options) {
      requirePut(runId, entry)
      refuseTransaction(options)
      const run = requireRun(runId)
      const { key, command, at } = entry
      requireInboxKey(key)
      const text = toStorableText({ key, command, at }, `The inbox entry ${key} of run ${runId}`)
      if (run.inboxKeys.has(key)) return false
      if (hasEnded(run)) throw createEndedError(runId)
      run.inboxKeys.add(key)
      run.inbox.set(key, text)
      wake(run)
      changes.notify(runId, true)
      return true
    },
    async inbox(runId) {
      requireTextId('ledger.inbox', runId)
      const unread = openStore().runs.get(runId)?.inbox.values() ?? []
      return [...unread].map((text) => JSON.parse(text) as InboxEntry)
    },
    async *tail(after) {
      const store = openStore()
      let count = after === undefined ? 0 : store.countUpTo(after)
      for (const event of upToNow(store.events, count)) yield { cursor: toCursor(++count, event), event }
    },
    changes: (runId, part) => changes.of(runId, part),
    async lease(runId) {
      requireTextId('ledger.lease', runId)
      const run = openStore().runs.get(runId)
      return run && findLease(run)
    },
    async renew(runIds, claim) {
      const { runs } = openStore()
      return runIds.filter((runId) => {
        const run = runs.get(runId)
        if (run?.lease?.holder !== claim.holder) return false
        giveLease(run, claim)
        return true
      })
    },
    async release(runId, holder, wait) {
      const dueAt = wait && toDueAt(wait)
      const { runs } = openStore()
      const run = runs.get(runId)
      if (run?.lease?.holder !== holder) return
      run.lease = undefined
      if (wait === undefined || hasEnded(run)) return
      const { children = [] } = wait
      const isAsked = run.inbox.size > 0 || children.some((id) => hasEnded(runs.get(id)))
      run.dueAt = isAsked ? 0 : (dueAt ?? undefined)
    },
    async close() {
      store = undefined
      changes.close()
    },
  })
}

function hasEnded(run: MemoryRun | undefined): boolean {
  return run?.onceKeys.has('run_finished') === true
}

function getPlace({ place }: MemoryRun): number {
  return place?.sessionPlace ?? 0
}

/**
 * An event as it is kept: deeply frozen, so that nothing can be written to the record. A `ConfigurationError` for what JSON
 * cannot carry. One that is frozen already is kept itself, with a getter that it may have: the runtime makes none.
 */
export function keepEvent(event: RuntimeEvent): RuntimeEvent {
  if (isFrozenJson(event)) return event
  const { seq, type, runId } = event
  const text = toStorableText(event, () => `Event ${seq} (${type}) of run ${runId}`)
  return deepFreeze(JSON.parse(text) as RuntimeEvent)
}

/** Returns true if a value is deeply frozen and equals what JSON would read back. */
function isFrozenJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isJson(value) && !Object.is(value, -0)
  // The messages of a session are not looked at again for each of its runs.
  if (isFrozenOnce(value)) return true
  if (!Object.isFrozen(value)) return false
  const inner: readonly unknown[] = Object.values(value)
  const isPlain = Array.isArray(value)
    ? inner.length === value.length
    : Object.getPrototypeOf(value) === Object.prototype && Object.getOwnPropertySymbols(value).length === 0
  return isPlain && inner.every(isFrozenJson)
}

/** Returns true if two kept events are equal, byte for byte. */
function isSameEvent(kept: RuntimeEvent, other: RuntimeEvent | undefined): boolean {
  return other !== undefined && (kept === other || toCanonicalJson(kept) === toCanonicalJson(other))
}
