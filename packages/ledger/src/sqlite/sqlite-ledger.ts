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
import { tailEvents } from '../read/tail-events.ts'
import { deltaDelayMsUnlessGiven } from '../content/event/delta-delay.ts'
import { RunKeys } from '../append/run-keys.ts'
import { AppendOrder } from '../append/append-order.ts'
import { redact } from '../removal/redact.ts'
import { removableStore, type RemovableStore } from '../removal/removable-store.ts'
import { isWholeRun } from '../removal/whole-run.ts'
import { ChangeFeed } from './change-feed.ts'
import { isRareType } from './migrations/0010-shared-rows.ts'
import { openDatabase } from './connection/open-database.ts'
import { sqliteProjections } from './projection-database.ts'
import { readEvents } from './read.ts'
import { sqliteRemovable } from './sqlite-removable.ts'
import { sqliteAudit } from './sqlite-audit.ts'
import type { SqliteLedgerOptions } from './connection/sqlite-ledger-options.ts'
import { StoreAccess } from './store-access.ts'
import { sqliteTail } from './tail.ts'

interface SqliteLedger extends AuditedLedger {
  readonly [removableStore]: RemovableStore
  readonly [projectionDatabase]: ProjectionDatabase
}

/**
 * A ledger in one SQLite file, created if missing. Any number of processes of one machine may use it: each run is driven by one
 * of them, which holds its lease; they wait for each other's commits.
 *
 * Throws `LedgerUnavailableError`, before anything is written, if the file cannot be a ledger: a folder, a file in a
 * folder that does not exist, a file of another application, a ledger of a newer version.
 */
export function sqliteLedger(path: string, options: SqliteLedgerOptions = {}): OpenLedger {
  digestNatively()
  const opened = openDatabase(path, options)
  const feed = new ChangeFeed(opened.database, options.pollIntervalMs ?? 250)
  const access = new StoreAccess(opened, options)
  const order = new AppendOrder()
  const keys = new RunKeys(options.keys, (runId) => access.read((store) => store.firstRow(runId)))
  const searched = searchedStore(access)
  const tailed = sqliteTail(access)
  const uses = new OpenUses()
  let closing: Promise<void> | undefined
  const ledger: SqliteLedger = {
    deltaDelayMs: options.deltaDelayMs ?? deltaDelayMsUnlessGiven,
    async append(runId, expected, events, appendOptions) {
      requireAppend(runId, expected, events)
      access.requireOpen()
      const head = await order.begin(runId, !keys.isPlain(runId), () =>
        keys.sealing(runId, events, (sealer) =>
          access.write((store) => store.append(runId, expected, events, { ...appendOptions, sealer })),
        ),
      )
      feed.notify(runId, takesEntries(appendOptions))
      feed.found(access.dataVersion)
      return head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      access.requireOpen()
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
    changes: (runId, part) => feed.of(runId, part),
    async lease(runId) {
      requireTextId('ledger.lease', runId)
      return await access.read(({ leases }) => leases.of(runId))
    },
    renew: (runIds, claim) => access.write((store) => store.renew(runIds, claim)),
    release: (runId, holder) => access.write((store) => store.release(runId, holder)),
    isWhole: (runId) =>
      isWholeRun(runId, options.keys, (id) => access.read((store) => store.removals.hasLost(id))),
    removeContent: async (runId, why) => void (await redact(ledger, runId, 'all', why)),
    beforeClose: (end) => uses.add(end),
    close() {
      closing ??= uses.closeAfter(() => access.close(feed))
      return closing
    },
    [auditSource]: sqliteAudit(access),
    [removableStore]: sqliteRemovable(access, (runId) => feed.notify(runId)),
    [projectionDatabase]: sqliteProjections(access, !options.readOnly),
  }
  return closedByUsing(ledger)
}

function searchedStore(access: StoreAccess): SearchedStore {
  return {
    runs: (asked) => access.read(({ search }) => search.runs(asked)),
    places: (asked) => access.read(({ search }) => search.places(asked)),
    hasIndexOf: isRareType,
    requireOpen: () => access.requireOpen(),
    async batch(asked, source, after) {
      const batch = await access.read(({ search }) => search.batch(asked, source, after))
      return { ...batch, rows: await access.withDecoding(batch.rows) }
    },
  }
}
