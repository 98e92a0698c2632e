import { LedgerUnavailableError, RunNotFoundError } from '../vocabulary/errors.ts'
import { closedByUsing, type OpenLedger } from '../ports/open-ledger.ts'
import { anyObject, fields, maybe } from '../vocabulary/options/option.ts'
import { requireOptions } from '../vocabulary/options/require-options.ts'
import type { Clock } from '../ports/clock.ts'
import { defaultHost } from '../ports/host.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import { takesEntries } from './append-rules.ts'
import { MemoryLeases } from './memory-leases.ts'
import { ChangeHints } from './change-hints.ts'
import type { MemoryRun } from './memory-run.ts'
import { MemoryStore } from './memory-store.ts'
import {
  requireEventQuery,
  requirePut,
  requireRead,
  requireRunFilter,
  requireTextId,
} from '../ports/read-options.ts'

/** How a ledger in memory is made. */
export interface MemoryLedgerOptions {
  /** The clock by which leases of runs end. Default: that of the host. */
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
      // What was appended before, and is recognised, takes no lease from whoever has the run by now.
      if (openStore().run(runId)?.head.seq !== before) leases.appended(runId, events, options.lease)
      changes.notify(runId, takesEntries(options))
      return head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      const run = requireRun(runId)
      leases.acquire(runId, claim)
      const head = run.acquire()
      changes.notify(runId, false)
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
