import { LedgerUnavailableError } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { withDecodingContext, type DecodingSource } from '../content/event/decoded-events.ts'
import { HistoryPieceReader } from '../content/event/history-piece-reader.ts'
import type { EventRow } from '../record/event-row.ts'
import type { AroundCommits, Durability } from './write/transactions.ts'
import { WalCheckpointer, processTime, maxWalBytesUnlessGiven } from './connection/wal-checkpointer.ts'
import { migrate } from './schema/migrate.ts'
import type { OpenedDatabase } from './connection/open-database.ts'
import { LogSync } from './connection/log-sync.ts'
import { OpenFiles } from './connection/open-files.ts'
import { ledgerFailure } from './schema/sqlite-failure.ts'
import type { SqliteLedgerOptions } from './connection/sqlite-ledger-options.ts'
import { SqliteStore } from './sqlite-store.ts'
import type { LedgerTables } from './schema/tables.ts'

/** The way to an open store: waits for its schema, refuses what must not be, and speaks of failures in our words. */
export class StoreAccess {
  readonly #opened: OpenedDatabase
  readonly #store: Promise<SqliteStore>
  /** The store, once it is open: to await it for each use would cost an append as much as a statement. */
  #ready: SqliteStore | undefined
  readonly #readOnly: boolean
  readonly #decoding: DecodingSource
  /** What runs begin with. */
  readonly pieces: HistoryPieceReader
  readonly #files: OpenFiles
  readonly #log: WalCheckpointer
  readonly #sync: LogSync
  #isClosed = false

  constructor(opened: OpenedDatabase, { readOnly = false, keys, maxWalBytes }: SqliteLedgerOptions) {
    const { database, path } = opened
    this.#opened = opened
    this.#readOnly = readOnly
    this.#log = new WalCheckpointer(database, {
      path,
      maxBytes: maxWalBytes ?? maxWalBytesUnlessGiven,
      clock: processTime,
    })
    this.#sync = new LogSync({
      path,
      clock: processTime,
      hasUnsynced: () => this.#ready?.transactions.hasUnsynced !== false,
    })
    this.pieces = new HistoryPieceReader({
      piece: (name) => this.read(({ removals }) => removals.histories.piece(name)),
      chain: (name) => this.read(({ removals }) => removals.histories.chain(name)),
    })
    this.#decoding = {
      keyring: keys,
      contents: (digests) => this.read(({ removals }) => removals.contents(digests)),
      histories: (names) => this.pieces.pieces(names),
      removals: (runId, fromSeq, toSeq) =>
        this.read(({ removals }) => removals.covering({ runId, fromSeq, toSeq })),
    }
    const files = new OpenFiles(database, path)
    this.#files = files
    this.#store = openStore(opened, {
      admit: (durability) => void requireSameFor(durability, files),
      committed: (durability, written) => {
        this.#log.committed({ logBytes: requireSameFor(durability, files), written })
        this.#sync.committed(durability)
      },
      tookAway: () => this.#log.tookAway(),
    })
    this.#store.then(
      (store) => (this.#ready = store),
      // Every use of the ledger gets the error; there may be no use.
      () => undefined,
    )
  }

  async read<T>(work: (store: SqliteStore) => T): Promise<T> {
    this.requireOpen()
    const store = this.#ready ?? (await this.#store)
    if (store.group.turn) await store.group.turn
    this.requireOpen()
    return this.#speaking(() => work(store))
  }

  async write<T>(work: (store: SqliteStore) => T | Promise<T>): Promise<T> {
    this.requireOpen()
    const store = this.#ready ?? (await this.#store)
    this.requireOpen()
    if (this.#readOnly) throw refusedReadOnly(this.#opened.path)
    try {
      return await work(store)
    } catch (error) {
      throw ledgerFailure(error, this.#opened.path)
    }
  }

  /** The version of the data that the last transaction began with. */
  get dataVersion(): number | undefined {
    return this.#ready?.transactions.version
  }

  /** Rows of events, each with what it needs to be read. */
  withDecoding<Row extends EventRow>(rows: readonly Row[]): Promise<readonly Row[]> {
    return withDecodingContext(rows, this.#decoding)
  }

  /** Pulls one item at a time, so that nothing stays locked while the items are used. */
  async *iterate<T>(open: (store: SqliteStore) => Iterator<T>): AsyncGenerator<T> {
    const items = await this.read(open)
    for (;;) {
      this.requireOpen()
      const next = this.#speaking(() => items.next())
      if (next.done) return
      yield next.value
    }
  }

  /** Refuses every use, then ends the hints: who follows them looks once more, and is refused. */
  async close(hints?: { close(): void }): Promise<void> {
    this.#isClosed = true
    hints?.close()
    const store = await this.#store.catch(() => undefined)
    await this.#sync.close()
    const { database, path } = this.#opened
    try {
      if (!this.#readOnly) {
        store?.harden()
        if (this.#files.hasOwnLog) leaveOneFile(database)
      }
    } catch (error) {
      throw ledgerFailure(error, path)
    } finally {
      this.#log.close()
      database.close()
    }
  }

  requireOpen(): void {
    if (!this.#isClosed) return
    throw new LedgerUnavailableError(
      `The ledger ${this.#opened.path} was closed, so it can neither be read nor written. Open it again with sqliteLedger().`,
    )
  }

  #speaking<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw ledgerFailure(error, this.#opened.path)
    }
  }
}

/** What is lazy may be lost until a barrier, so only barriers have to find the files in their places. */
function requireSameFor(durability: Durability, files: OpenFiles): number | undefined {
  return durability === 'barrier' ? files.requireSame() : undefined
}

async function openStore(
  { database, path, isCurrent }: OpenedDatabase,
  around: AroundCommits,
): Promise<SqliteStore> {
  const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
  try {
    if (!isCurrent) await migrate(database, tables)
    return new SqliteStore(database, tables, around)
  } catch (error) {
    throw ledgerFailure(error, path)
  }
}

/**
 * Ends the write-ahead log unless another process has the file open: a ledger at rest is one file, which can be
 * copied, and read where nothing can be written. If other processes have it open SQLite refuses at once, and the last
 * of them ends the log. SQLite removes the log by its name, whichever ledger's it is.
 */
function leaveOneFile(database: Database): void {
  try {
    database.pragma('busy_timeout = 0')
    database.pragma('journal_mode = delete')
  } catch {
    // The log stays, which is as safe.
  }
}

function refusedReadOnly(path: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The ledger ${path} was opened with readOnly, so nothing was written. Open it without readOnly to drive or command runs.`,
  )
}
