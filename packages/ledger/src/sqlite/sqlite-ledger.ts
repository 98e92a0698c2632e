import type { Ledger, RunId } from '@tallystick/core'
import {
  closedByUsing,
  OpenUses,
  type OpenLedger,
  requireAppend,
  requirePut,
  requireTextId,
  takesEntries,
} from '@tallystick/core/store-kit'
import type { Head } from '@tallystick/core/vocabulary'
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
import { WriterLock } from './connection/writer-lock.ts'

interface SqliteLedger extends AuditedLedger {
  readonly [removableStore]: RemovableStore
  readonly [projectionDatabase]: ProjectionDatabase
}

/**
 * A ledger in one SQLite file, created if missing. One process at a time drives the runs of a file; any number may
 * read it and put commands into its inboxes.
 *
 * Throws `LedgerUnavailableError`, before anything is written, if the file cannot be a ledger: a folder, a file in a
 * folder that does not exist, a file of another application, a ledger of a newer version.
 */
export function sqliteLedger(path: string, options: SqliteLedgerOptions = {}): OpenLedger {
  digestNatively()
  const opened = openDatabase(path, options)
  const feed = new ChangeFeed(opened.database, options.pollIntervalMs ?? 250)
  const access = new StoreAccess(opened, options)
  const { readOnly = false, oneWriter = true, busyTimeoutMs } = options
  const writer = readOnly || !oneWriter ? undefined : new WriterLock(opened.path, busyTimeoutMs)
  const driving = (runId: RunId, epoch: number, write: () => Promise<Head>): Promise<Head> =>
    writer ? writer.drive(runId, epoch, write) : write()
  const order = new AppendOrder()
  const keys = new RunKeys(options.keys, (runId) => access.read((store) => store.firstRow(runId)))
  const searched = searchedStore(access)
  const tailed = sqliteTail(access)
  const uses = new OpenUses()
  let closing: Promise<void> | undefined
  const ledger: SqliteLedger = {
    deltaDelayMs: options.deltaDelayMs ?? deltaDelayMsUnlessGiven,
    leases: leasesOf(access),
    async append(runId, expected, events, appendOptions) {
      requireAppend(runId, expected, events)
      access.requireOpen()
      const waits = writer?.isHeld === false || !keys.isPlain(runId)
      const head = await order.begin(runId, waits, () =>
        driving(runId, expected.epoch, () =>
          keys.sealing(runId, events, (sealer) =>
            access.write((store) => store.append(runId, expected, events, { ...appendOptions, sealer })),
          ),
        ),
      )
      if (events.at(-1)?.type === 'run_finished') writer?.release(runId)
      feed.notify(runId, takesEntries(appendOptions))
      feed.found(access.dataVersion)
      return head
    },
    async acquire(runId) {
      requireTextId('ledger.acquire', runId)
      access.requireOpen()
      const head = await driving(runId, 0, () => access.write((store) => store.acquire(runId)))
      writer?.register(runId, head.epoch)
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
    release: (runId, epoch) => writer?.release(runId, epoch),
    isDriven: async (runId) => writer?.isDriven(runId),
    isWhole: (runId) =>
      isWholeRun(runId, options.keys, (id) => access.read((store) => store.removals.hasLost(id))),
    removeContent: async (runId, why) => void (await redact(ledger, runId, 'all', why)),
    beforeClose: (end) => uses.add(end),
    close() {
      closing ??= uses.closeAfter(() => access.close(feed).finally(() => writer?.leave()))
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

function leasesOf(access: StoreAccess): NonNullable<Ledger['leases']> {
  return {
    take: (...args) => access.write(({ leases }) => leases.take(...args)),
    renew: (...args) => access.write(({ leases }) => leases.renew(...args)),
    giveBack: (...args) => access.write(({ leases }) => leases.giveBack(...args)),
    expired: () => access.read(({ leases }) => leases.expired()),
  }
}
