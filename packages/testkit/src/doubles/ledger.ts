import {
  type Clock,
  type Ledger,
  LedgerUnavailableError,
  memoryLedger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { type ContentRemoval, omitUndefined, requireOptions, someLedger } from '@tallystick/core/internal'
import { refuseTransaction } from '@tallystick/core/store-kit'
import type { AppendOptions, ExpectedHead, InboxEntry, TakeOverClaim } from '@tallystick/core/vocabulary'

/** How a ledger is wrapped: each call, and each list that is read one by one. */
interface LedgerWrappers {
  readonly call: <T>(call: () => Promise<T>) => Promise<T>
  readonly each: <T>(items: AsyncIterable<T>) => AsyncIterable<T>
}

/** A ledger whose calls and lists go through wrappers. `inner` is asked at each call. It removes no content. */
export function wrapLedger(inner: () => Ledger, { call, each }: LedgerWrappers): Ledger {
  const { deltaDelayMs } = inner()
  return {
    ...omitUndefined({ deltaDelayMs }),
    append: (...args) => call(() => inner().append(...args)),
    acquire: (...args) => call(() => inner().acquire(...args)),
    head: (runId) => call(() => inner().head(runId)),
    read: (...args) => each(inner().read(...args)),
    find: (query) => each(inner().find(query)),
    runs: (filter) => each(inner().runs(filter)),
    due: (filter) => each(inner().due(filter)),
    tail: (after) => each(inner().tail(after)),
    put: (...args) => call(() => inner().put(...args)),
    inbox: (runId) => call(() => inner().inbox(runId)),
    changes: (...args) => inner().changes(...args),
    lease: (runId) => call(() => inner().lease(runId)),
    renew: (...args) => call(() => inner().renew(...args)),
    release: (...args) => call(() => inner().release(...args)),
    close: () => call(() => inner().close()),
  }
}

/** A ledger whose machine may lose power. */
export interface VolatileLedger extends Ledger {
  /** Forgets what was appended after the last barrier, except the first `kept` of these appends. */
  losePower(kept?: number): Promise<void>
  /** The events that were acknowledged and forgotten. */
  readonly lost: readonly RuntimeEvent[]
  /** True if losing power would leave this event of a run: it is on record, and a barrier came with it or after it. */
  isSynced(runId: RunId, seq: number): boolean
}

/** A change of the ledger, as its disk holds it. */
type Change =
  | { readonly kind: 'append'; readonly runId: RunId; readonly given: Appended }
  | { readonly kind: 'acquire'; readonly runId: RunId; readonly claim: TakeOverClaim | undefined }
  | { readonly kind: 'put'; readonly runId: RunId; readonly entry: InboxEntry }

type Appended = readonly [ExpectedHead, readonly RuntimeEvent[], AppendOptions]

/**
 * A ledger in memory that distinguishes `barrier` from `lazy` appends: losing power loses lazy appends, unless a
 * barrier, a take-over or a put came after them. All runs share one log, as in SQLite and Postgres.
 */
export function volatileLedger(
  options: { readonly clock?: Pick<Clock, 'now'> | undefined } = {},
): VolatileLedger {
  let memory = memoryLedger(options)
  let changes: Change[] = []
  let synced = 0
  const lost: RuntimeEvent[] = []
  /** The last synced event of each run. */
  const syncedSeqs = new Map<RunId, number>()

  function sync(): void {
    for (const change of changes.slice(synced)) {
      if (change.kind !== 'append') continue
      const { seq = 0 } = change.given[1].at(-1) ?? {}
      syncedSeqs.set(change.runId, Math.max(seq, syncedSeqs.get(change.runId) ?? 0))
    }
    synced = changes.length
  }

  async function make<T>(change: Change, isBarrier: boolean): Promise<T> {
    const machine = memory
    const made = await carryOut(machine, change)
    if (machine !== memory) throw new LedgerUnavailableError('The machine of this ledger has lost power.')
    changes.push(change)
    if (isBarrier) sync()
    return made as T
  }

  return {
    ...memory,
    ...wrapLedger(() => memory, { call: (call) => call(), each: (items) => items }),
    append: (runId, ...given) => make({ kind: 'append', runId, given }, given[2].durability === 'barrier'),
    acquire: (runId, claim) => make({ kind: 'acquire', runId, claim }, true),
    put: async (runId, entry, options) => {
      refuseTransaction(options)
      return await make({ kind: 'put', runId, entry }, true)
    },
    async losePower(kept = 0) {
      const forgotten = changes.slice(synced + kept)
      for (const change of forgotten) if (change.kind === 'append') lost.push(...change.given[1])
      changes = changes.slice(0, synced + kept)
      sync()
      memory = memoryLedger(options)
      for (const change of changes) await carryOut(memory, withoutLease(change))
    },
    lost,
    isSynced: (runId, seq) => (syncedSeqs.get(runId) ?? 0) >= seq,
  }
}

/** Those who drove runs on the machine are gone with it. */
function withoutLease(change: Change): Change {
  if (change.kind === 'acquire') return { ...change, claim: undefined }
  if (change.kind !== 'append') return change
  const [expected, events, options] = change.given
  return { ...change, given: [expected, events, { ...options, lease: undefined }] }
}

function carryOut(memory: Ledger, change: Change): Promise<unknown> {
  switch (change.kind) {
    case 'append':
      return memory.append(change.runId, ...change.given)
    case 'acquire':
      return memory.acquire(change.runId, change.claim)
    case 'put':
      return memory.put(change.runId, change.entry)
  }
}

/** Returns whether the machine of a ledger can lose power. */
export function isVolatile(ledger: Ledger): ledger is VolatileLedger {
  return 'losePower' in ledger
}

/** A ledger, and what it is waiting for. */
export interface WatchedLedger {
  readonly ledger: Ledger
  /** Resolves when one of the calls that are under way has ended; `undefined` if none is. */
  readonly outside: () => Promise<unknown> | undefined
}

/**
 * Watches the calls of a ledger that waits for a disk or a server: `waitUntilSettled` and `simulate` let time stand still while one
 * is under way.
 */
export function watchedLedger(ledger: Ledger): WatchedLedger {
  requireOptions('watchedLedger', someLedger, ledger, 'the ledger')
  const underWay = new Set<Promise<unknown>>()
  const watch = <T>(begin: () => Promise<T>): Promise<T> => {
    const call = begin()
    const ended: Promise<unknown> = call.then(
      () => underWay.delete(ended),
      () => underWay.delete(ended),
    )
    underWay.add(ended)
    return call
  }
  async function* each<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    const iterator = items[Symbol.asyncIterator]()
    const next = (): Promise<IteratorResult<T>> => watch(() => iterator.next())
    for (let item = await next(); !item.done; item = await next()) yield item.value
  }
  return {
    outside: () => (underWay.size > 0 ? Promise.race(underWay) : undefined),
    ledger: {
      ...wrapLedger(() => ledger, { call: watch, each }),
      ...(ledger.removeContent && {
        removeContent: (runId: RunId, why: ContentRemoval) =>
          watch(async () => ledger.removeContent?.(runId, why)),
      }),
    },
  }
}
