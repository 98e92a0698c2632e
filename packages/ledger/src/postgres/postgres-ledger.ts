import {
  closedByUsing,
  OpenUses,
  type OpenLedger,
  requireAppend,
  requirePut,
  requireTextId,
  takesEntries,
} from '@tallystick/core/store-kit'
import { auditSource, type AuditedLedger } from '../record/audit-source.ts'
import { digestNatively } from '../record/chain.ts'
import { projectionDatabase, type ProjectionDatabase } from '../projection/tables/projection-database.ts'
import type { SearchedStore } from '../read/event-search.ts'
import { findEvents } from '../read/find-events.ts'
import { tailEvents, type TailedStore } from '../read/tail-events.ts'
import { deltaDelayMsUnlessGiven } from '../content/event/delta-delay.ts'
import { isSharedType } from '../content/event/shared-types.ts'
import { RunKeys } from '../append/run-keys.ts'
import { AppendOrder } from '../append/append-order.ts'
import { redact } from '../removal/redact.ts'
import { removableStore, type RemovableStore } from '../removal/removable-store.ts'
import { isWholeRun } from '../removal/whole-run.ts'
import { ChangeFeed } from './change-feed.ts'
import { postgresAudit } from './postgres-audit.ts'
import { postgresProjections } from './projection-database.ts'
import type { PostgresLedgerOptions } from './connection/postgres-ledger-options.ts'
import { postgresRemovable } from './postgres-removable.ts'
import { readEvents } from './read.ts'
import { StoreAccess } from './store-access.ts'
import { tailHorizon, type TailHorizon } from './rows/tail-horizon.ts'

/** A ledger in Postgres, and what can be asked of it beyond the port. */
export interface PostgresLedger extends OpenLedger {
  /**
   * How far tails over all runs lag. Worth an alarm: one forgotten transaction, in any database of the server,
   * keeps them where they are as long as it is open. Nothing else waits for it.
   */
  horizon(): Promise<TailHorizon>
}

interface LedgerWithin extends Omit<PostgresLedger, typeof Symbol.asyncDispose>, AuditedLedger {
  readonly [removableStore]: RemovableStore
  readonly [projectionDatabase]: ProjectionDatabase
}

/**
 * A ledger in a schema of a Postgres database, created if missing. Any number of processes may drive runs, read them
 * and put commands into their inboxes. Connects at the first use.
 *
 * Throws a `ConfigurationError` if the options cannot work. Every use rejects with `LedgerUnavailableError`, before
 * anything is written, if the schema cannot be a ledger: it has other tables, or a ledger of a newer version.
 */
export function postgresLedger(options: PostgresLedgerOptions): PostgresLedger {
  digestNatively()
  const access = new StoreAccess(options)
  const feed = new ChangeFeed(access, options)
  const order = new AppendOrder()
  const keys = new RunKeys(options.keys, (runId) => access.read((store) => store.firstRow(runId)))
  const searched: SearchedStore = {
    runs: (asked) => access.read(({ search }) => search.runs(asked)),
    places: (asked) => access.read(({ search }) => search.places(asked)),
    hasIndexOf: (type) => !isSharedType(type),
    requireOpen: () => access.requireOpen(),
    batch: (asked, source, after) =>
      access.read(async (store) => {
        const batch = await store.search.batch(asked, source, after)
        return { ...batch, rows: await store.withDecoding(batch.rows) }
      }),
  }
  const tailed = tailedStore(access, feed)
  const uses = new OpenUses()
  let closing: Promise<void> | undefined
  const ledger: LedgerWithin = {
    deltaDelayMs: options.deltaDelayMs ?? deltaDelayMsUnlessGiven,
    async append(runId, expected, events, appendOptions) {
      requireAppend(runId, expected, events)
      const head = await order.begin(runId, !keys.isPlain(runId), () =>
        access.write((store) =>
          keys.sealing(runId, events, (sealer) =>
            store.appender.append(runId, expected, events, { ...appendOptions, sealer }),
          ),
        ),
      )
      feed.notify(runId, takesEntries(appendOptions))
      return head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      const head = await access.write((store) => store.acquire(runId, claim))
      feed.notify(runId)
      return head
    },
    async head(runId) {
      requireTextId('ledger.head', runId)
      return await access.read((store) => store.head(runId))
    },
    read: (runId, range) => readEvents(access, runId, range),
    find: (query) => findEvents(searched, query),
    runs: (filter) => access.iterate((store) => store.runs(filter)),
    async put(runId, entry) {
      requirePut(runId, entry)
      const isNew = await access.write((store) => store.put(runId, entry))
      if (isNew) feed.notify(runId)
      return isNew
    },
    async inbox(runId) {
      requireTextId('ledger.inbox', runId)
      return await access.read((store) => store.inbox(runId))
    },
    tail: (after) => tailEvents(tailed, after),
    changes: (runId, part) => (runId === undefined ? feed.ofAll() : feed.of(runId, part)),
    async lease(runId) {
      requireTextId('ledger.lease', runId)
      return await access.read(({ appender }) => appender.lease(runId))
    },
    renew: (runIds, claim) => access.write(({ appender }) => appender.renew(runIds, claim)),
    release: (runId, holder) => access.write(({ appender }) => appender.release(runId, holder)),
    isWhole: (runId) =>
      isWholeRun(runId, options.keys, (id) => access.read((store) => store.removals.hasLost(id))),
    removeContent: async (runId, why) => void (await redact(ledger, runId, 'all', why)),
    horizon: () => access.read(({ connections }) => tailHorizon(connections, access.place.quotedSchema)),
    beforeClose: (end) => uses.add(end),
    close() {
      closing ??= uses.closeAfter(() => access.close(() => feed.close()))
      return closing
    },
    [auditSource]: postgresAudit(access),
    [removableStore]: postgresRemovable(access, (runId) => feed.notify(runId)),
    [projectionDatabase]: postgresProjections(access, !options.readOnly),
  }
  return closedByUsing(ledger)
}

function tailedStore(access: StoreAccess, feed: ChangeFeed): TailedStore {
  return {
    requireOpen: () => access.requireOpen(),
    async begin(after) {
      const begun = await access.read(({ tail }) => tail.begin(after))
      if (begun.isHeldBack) feed.pollSoon()
      return {
        rowAtCursor: begun.rowAtCursor,
        isDropped: begun.isDropped,
        batch: (place) =>
          access.read(async (store) => {
            const batch = await begun.batch(place)
            return { ...batch, rows: await store.withDecoding(batch.rows) }
          }),
      }
    },
  }
}
