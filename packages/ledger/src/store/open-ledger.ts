import {
  type Ledger,
  LedgerDamagedError,
  LedgerUnavailableError,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { option, type Schema } from '@tallystick/core/internal'
import {
  closeByUsing,
  type OpenLedger,
  OpenUses,
  requireInboxKey,
  requirePut,
  requireTextId,
  requireWellFormed,
  toStorableText,
  hintsInbox,
  toDueAt,
} from '@tallystick/core/store-kit'
import type { InboxEntry, PutOptions } from '@tallystick/core/vocabulary'
import { encodeEvent } from '../format/body.ts'
import { isRunId } from '../format/event-row.ts'
import { type Keyring, Sealer } from '../format/keyring.ts'
import { findEvents } from './find-events.ts'
import { readEvents, RowReader } from './read-events.ts'
import { redact } from './redact.ts'
import type { InboxRow, StoreDatabase } from './database.ts'
import { listDue, listRuns, readHead, readInbox, readKeyId, readLease } from './records.ts'
import { internals, type Internals, type Store } from './store.ts'
import { tailEvents } from './tail-events.ts'

/** How a store is opened as a ledger. */
export interface LedgerSettings {
  readonly keys?: Keyring | undefined
  readonly deltaDelayMs: number
}

const maxDelayMs = 1_000

/** Checks the option `deltaDelayMs`. */
export const deltaDelay: Schema = option.valueThat(
  `a whole number of milliseconds from 0 to ${maxDelayMs}`,
  (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxDelayMs,
)

/** Makes a ledger from a store: checks arguments, encodes events, and checks and decodes what it reads. */
export function openLedger(store: Store, { keys: keyring, deltaDelayMs }: LedgerSettings): OpenLedger {
  const { database } = store
  const rows = new RowReader(database, keyring)
  const sealing = new Sealing(keyring, database)
  const uses = new OpenUses()
  let closing: Promise<void> | undefined
  const ledger: Ledger & { readonly [internals]: Internals } = {
    deltaDelayMs,
    async append(runId, expected, events, options) {
      requireWellFormed(runId, expected, events)
      database.requireOpen()
      const { durability, consumedInboxKeys: takes = [], lease, wakes } = options
      const head = await sealing.append(runId, events, (sealer) =>
        store.append({
          ...{ runId, expected, durability, takes, lease, wakes, isSealed: sealer !== undefined },
          events: events.map((event) => encodeEvent(event, sealer)),
        }),
      )
      store.changed(runId, hintsInbox(expected, options))
      return head
    },
    async acquire(runId, claim) {
      requireTextId('ledger.acquire', runId)
      database.requireOpen()
      const head = await store.acquire(runId, claim)
      store.changed(runId, true)
      return head
    },
    async head(runId) {
      requireTextId('ledger.head', runId)
      return await readHead(database, runId)
    },
    read: (runId, range) => readEvents(database, rows, runId, range),
    find: (query) => findEvents(database, rows, query),
    runs: (filter) => listRuns(database, filter),
    due: (filter) => listDue(database, filter),
    async put(runId: RunId, entry: InboxEntry, { within }: PutOptions = {}) {
      requirePut(runId, entry)
      requireInboxKey(entry.key)
      const { key, at, command } = entry
      const text = toStorableText(command, `The command under ${key} for run ${runId}`)
      const isNew = await store.put(runId, { key, at, command: text }, within)
      // In a transaction that may yet be undone, nothing has changed.
      if (isNew && within === undefined) store.changed(runId, true)
      return isNew
    },
    async inbox(runId) {
      requireTextId('ledger.inbox', runId)
      return (await readInbox(database, runId)).map((row) => parseInboxEntry(runId, row))
    },
    tail: (after) => tailEvents(store, rows, after),
    changes: (runId, part) => store.changes(runId, part),
    async lease(runId) {
      requireTextId('ledger.lease', runId)
      return await readLease(database, runId)
    },
    renew: (runIds, claim) => store.renew(runIds, claim),
    async release(runId, holder, wait) {
      const stored = wait && { dueAt: toDueAt(wait), children: wait.children?.filter(isRunId) ?? [] }
      if (isRunId(runId)) await store.release(runId, holder, stored)
    },
    removeContent: async (runId, why) => void (await redact(ledger, runId, 'all', why)),
    beforeClose: (end) => uses.add(end),
    close() {
      closing ??= uses.closeAfter(() => store.close())
      return closing
    },
    [internals]: { store, rows },
  }
  return closeByUsing(ledger)
}

function parseInboxEntry(runId: RunId, { key, at, command }: InboxRow): InboxEntry {
  try {
    return { key, at, command: JSON.parse(command) as InboxEntry['command'] }
  } catch (cause) {
    throw new LedgerDamagedError(
      `The inbox of run ${runId} is damaged: the command under ${key} cannot be read. Run verify on the ledger, and ` +
        'restore a copy.',
      { cause },
    )
  }
}

/** How many runs are remembered; of others it is looked up how they began. */
const maxRuns = 4096

/**
 * Seals the events of a run with the key of its subject, as the first event was; a run that has begun without a key continues
 * without. Appends of a run keep the order in which they were begun, also where one has to wait for a key: an append that
 * overtook it would be a conflict.
 */
class Sealing {
  readonly #keyring: Keyring | undefined
  readonly #database: StoreDatabase
  /** Ids of keys; null if nothing is sealed. The most recently used run is last. */
  readonly #keyIds = new Map<RunId, string | null>()
  /** The last append under way of each run that has one which waits; none of them rejects. */
  readonly #last = new Map<RunId, Promise<unknown>>()

  constructor(keyring: Keyring | undefined, database: StoreDatabase) {
    this.#keyring = keyring
    this.#database = database
  }

  /** Calls `write` with what seals the events: at once if the run is known not to be sealed, and no earlier append waits. */
  append<T>(
    runId: RunId,
    events: readonly RuntimeEvent[],
    write: (sealer: Sealer | undefined) => Promise<T>,
  ): Promise<T> {
    const isStart = events[0]?.type === 'run_started'
    if (isStart && this.#keyring === undefined) this.#remember(runId, null)
    const isPlain = this.#keyIds.get(runId) === null && (!isStart || this.#keyring === undefined)
    const before = this.#last.get(runId)
    if (isPlain && before === undefined) return write(undefined)
    const appended = this.#writeAfter(before, async () => {
      if (isPlain) return await write(undefined)
      try {
        return await write(await this.#sealerFor(runId, events))
      } catch (error) {
        // Another process may have begun the run, and for another subject.
        this.#keyIds.delete(runId)
        throw error
      }
    })
    const ended = appended
      .catch(() => undefined)
      .then(() => {
        if (this.#last.get(runId) === ended) this.#last.delete(runId)
      })
    this.#last.set(runId, ended)
    return appended
  }

  async #writeAfter<T>(before: Promise<unknown> | undefined, write: () => Promise<T>): Promise<T> {
    if (before) await before
    return await write()
  }

  /** Rejects if the run is sealed and its key is not there: what would be written in the clear could not be erased. */
  async #sealerFor(runId: RunId, events: readonly RuntimeEvent[]): Promise<Sealer | undefined> {
    const [first] = events
    if (first?.type === 'run_started') {
      const { subject } = first
      const key = subject === undefined ? undefined : await this.#keyring?.keyOf(subject)
      this.#remember(runId, key?.id ?? null)
      return key && new Sealer(key)
    }
    const known = this.#keyIds.get(runId)
    const id = known === undefined ? ((await readKeyId(this.#database, runId)) ?? null) : known
    const bytes = id === null ? undefined : await this.#keyring?.key(id)
    if (id !== null && bytes === undefined) {
      const way =
        this.#keyring === undefined
          ? 'and this ledger was opened without keys. Open it with the keyring that the run was started with.'
          : 'and that key was destroyed, so the run was erased and cannot be continued. Start another run.'
      throw new LedgerUnavailableError(
        `The content of run ${runId} is encrypted with the key of its subject, ${way} Nothing was written.`,
      )
    }
    this.#remember(runId, id)
    return id === null || bytes === undefined ? undefined : new Sealer({ id, bytes })
  }

  #remember(runId: RunId, id: string | null): void {
    this.#keyIds.delete(runId)
    this.#keyIds.set(runId, id)
    const [oldest] = this.#keyIds.keys()
    if (this.#keyIds.size > maxRuns && oldest !== undefined) this.#keyIds.delete(oldest)
  }
}
