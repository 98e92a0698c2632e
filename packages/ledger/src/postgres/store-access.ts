import { LedgerUnavailableError } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import { Connections, type Statement } from './connection/connections.ts'
import { postgresLedgerOptions } from './connection/option-check.ts'
import { loadPg, requirePg } from './connection/pg-package.ts'
import { databasePlace, type DatabasePlace } from './connection/database-place.ts'
import { inspectSchema } from './schema/inspect-schema.ts'
import { migrate, requireUsable, schemaVersion } from './schema/migrate.ts'
import { ledgerFailure } from './connection/postgres-failure.ts'
import type { PostgresLedgerOptions } from './connection/postgres-ledger-options.ts'
import { PostgresStore } from './postgres-store.ts'

/**
 * The way to a store: opens it at the first use, refuses what must not be, and speaks of failures in our words.
 * Where opening fails, the next use tries again.
 */
export class StoreAccess {
  readonly place: DatabasePlace
  readonly #options: PostgresLedgerOptions
  #connections: Promise<Connections> | undefined
  #store: Promise<PostgresStore> | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #isClosed = false

  /** Throws a `ConfigurationError` where the options cannot work. Connects to nothing yet. */
  constructor(options: PostgresLedgerOptions) {
    requireOptions('postgresLedger', postgresLedgerOptions, options)
    requirePg()
    this.place = databasePlace(options)
    this.#options = options
  }

  async read<T>(work: (store: PostgresStore) => Promise<T>): Promise<T> {
    this.requireOpen()
    return await this.#attend(async () => work(await this.#opened()))
  }

  write<T>(work: (store: PostgresStore) => Promise<T>): Promise<T> {
    return this.read((store) => {
      if (this.#options.readOnly) throw this.#refusedReadOnly()
      return work(store)
    })
  }

  /** Pulls one item at a time; between them no connection is held. */
  async *iterate<T>(open: (store: PostgresStore) => AsyncIterator<T>): AsyncGenerator<T> {
    const items = await this.read((store) => Promise.resolve(open(store)))
    for (;;) {
      this.requireOpen()
      const next = await this.#attend(() => items.next())
      if (next.done) return
      yield next.value
    }
  }

  /** Tells other processes something, over the connections of the store that is open. */
  async notify(channel: string, payload: string): Promise<void> {
    const store = await this.#store
    await store?.connections.rows({
      name: 'tallystick tell',
      text: store.texts.notify,
      values: [channel, payload],
    })
  }

  /** Lets what is under way end, then `farewell`; makes what was lazy durable, and ends every connection. */
  async close(farewell: () => Promise<void>): Promise<void> {
    this.#isClosed = true
    try {
      await Promise.allSettled(this.#underWay)
      await farewell()
      const store = await this.#store?.catch(() => undefined)
      await store?.appender.harden()
    } catch (error) {
      throw this.failure(error)
    } finally {
      await this.#connections?.then(
        (connections) => connections.end(),
        () => undefined,
      )
    }
  }

  /** What happened as an error of ours. */
  failure(error: unknown): Error {
    return ledgerFailure(error, this.place.description)
  }

  /** Closing waits for it, and what it throws is an error of ours. */
  async #attend<T>(work: () => Promise<T>): Promise<T> {
    const working = work()
    this.#underWay.add(working)
    try {
      return await working
    } catch (error) {
      throw this.failure(error)
    } finally {
      this.#underWay.delete(working)
    }
  }

  #opened(): Promise<PostgresStore> {
    this.#store ??= this.#open()
    this.#store.catch(() => {
      this.#store = undefined
    })
    return this.#store
  }

  async #open(): Promise<PostgresStore> {
    const connections = await this.#connected()
    const ask = <Row>(statement: Statement): Promise<readonly Row[]> => connections.rows<Row>(statement)
    const found = await inspectSchema(ask, this.place)
    requireUsable(this.place, found, this.#options.readOnly ?? false)
    if (found.kind === 'nothing' || found.version < schemaVersion)
      await migrate(this.#options, this.place, connections.pg)
    return new PostgresStore(connections, this.place, this.#options)
  }

  #connected(): Promise<Connections> {
    this.#connections ??= loadPg().then((pg) => new Connections(this.#options, pg))
    this.#connections.catch(() => {
      this.#connections = undefined
    })
    return this.#connections
  }

  requireOpen(): void {
    if (!this.#isClosed) return
    throw new LedgerUnavailableError(
      `The ledger at ${this.place.description} was closed, so it can neither be read nor written. Open it again with postgresLedger().`,
    )
  }

  #refusedReadOnly(): LedgerUnavailableError {
    return new LedgerUnavailableError(
      `The ledger at ${this.place.description} was opened with readOnly, so nothing was written. Open it without readOnly to drive or command runs.`,
    )
  }
}
