import type { Database, Statement } from 'better-sqlite3'
import type { AppendOptions } from '@tallystick/core/vocabulary'

/** How a commit is to be kept. */
export type Durability = AppendOptions['durability']

/** Hooks around each transaction. */
export interface AroundCommits {
  /** Called before it begins. If it throws, nothing is written. */
  admit(durability: Durability): void
  /**
   * Called after the commit, which wrote so many bytes at most. If it throws, the committing call throws too: its writes are
   * not acknowledged.
   */
  committed(durability: Durability, written: number): void
  /** Called within a transaction that takes content away, of which the log keeps copies. */
  tookAway?(): void
}

const nothingAround: AroundCommits = { admit: () => {}, committed: () => {} }

/** What is remembered of a database between transactions. */
export interface Remembered {
  /** Called when a transaction has begun; `version` is another one where another connection has committed meanwhile. */
  begun(version: number): void
  /** Called when a transaction, or a part of one, was undone. */
  undone(): void
}

/** What one of several works in a transaction came to. */
export type Outcome<T> =
  | { readonly done: true; readonly value: T }
  | { readonly done: false; readonly error: unknown }

/**
 * Runs transactions that hold the write lock from their start, and makes them durable as asked. The write-ahead log
 * is one file, written in order: syncing it for a barrier hardens every lazy commit before it.
 */
export class Transactions {
  readonly #database: Database
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #save: Statement
  readonly #release: Statement
  readonly #undo: Statement
  readonly #rowsWritten: Statement<[], number>
  readonly #around: AroundCommits
  readonly #remembered: Remembered | undefined
  readonly #dataVersion: Statement<[], number>
  #version: number | undefined
  #durability: Durability = 'barrier'
  #hasUnsynced = false

  constructor(database: Database, around: AroundCommits = nothingAround, remembered?: Remembered) {
    this.#database = database
    this.#around = around
    this.#remembered = remembered
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
    this.#rollback = database.prepare('rollback')
    this.#save = database.prepare('savepoint work')
    this.#release = database.prepare('release work')
    this.#undo = database.prepare('rollback to work')
    this.#rowsWritten = database.prepare<[], number>('select total_changes()').pluck()
    this.#dataVersion = database.prepare<[], number>('pragma data_version').pluck()
  }

  /** The version of the data that the last transaction began with: another one where another connection has committed. */
  get version(): number | undefined {
    return this.#version
  }

  /** Whether there may be lazy commits that no barrier has hardened yet. */
  get hasUnsynced(): boolean {
    return this.#hasUnsynced
  }

  /** What `work` did is committed when this returns, and undone when it throws. `written` is what it writes at most, in bytes. */
  transact<T>(durability: Durability, work: () => T, written: number = Infinity): T {
    this.#around.admit(durability)
    this.#choose(durability)
    this.#begin.run()
    let result: T
    try {
      this.#remember()
      // A commit that writes nothing syncs nothing: a barrier that did not write leaves what is lazy as it was.
      const mayHarden = durability === 'barrier' && this.#hasUnsynced
      const before = mayHarden ? this.#rowsWritten.get() : undefined
      result = work()
      const hardens = mayHarden && this.#rowsWritten.get() !== before
      this.#commit.run()
      if (durability === 'lazy') this.#hasUnsynced = true
      else if (hardens) this.#hasUnsynced = false
    } catch (error) {
      if (this.#database.inTransaction) this.#rollback.run()
      this.#remembered?.undone()
      throw error
    }
    this.#around.committed(durability, written)
    return result
  }

  /**
   * Runs works in one transaction, in their order. The writes of one that throws are undone, and the others are
   * committed. Throws if the commit fails: then none is committed. A work may be done more than once, and only what it did
   * last stays.
   */
  transactAll<T>(
    durability: Durability,
    works: readonly (() => T)[],
    written?: number,
  ): readonly Outcome<T>[] {
    return this.#allOf(durability, works, written) ?? this.#eachOf(durability, works)
  }

  /** Nearly always none throws: then no work needs a savepoint, for which SQLite copies each page before it changes it. */
  #allOf<T>(
    durability: Durability,
    works: readonly (() => T)[],
    written?: number,
  ): readonly Outcome<T>[] | undefined {
    let hasFailed = false
    const all = (): readonly Outcome<T>[] => {
      try {
        return works.map((work) => ({ done: true, value: work() }))
      } catch (error) {
        hasFailed = true
        throw error
      }
    }
    try {
      return this.transact(durability, all, written)
    } catch (error) {
      if (hasFailed) return undefined
      throw error
    }
  }

  #eachOf<T>(durability: Durability, works: readonly (() => T)[]): readonly Outcome<T>[] {
    const fatal = new Map<number, Outcome<T>>()
    for (;;) {
      try {
        return this.transact(durability, () =>
          works.map((work, index) => fatal.get(index) ?? this.#within(work, index)),
        )
      } catch (error) {
        // A full disk, say, ends the whole transaction: the others are done again without the one that met it.
        if (!(error instanceof TransactionLost)) throw error
        fatal.set(error.index, { done: false, error: error.cause })
      }
    }
  }

  #within<T>(work: () => T, index: number): Outcome<T> {
    this.#save.run()
    const outcome = this.#outcomeOf(work, index)
    this.#release.run()
    return outcome
  }

  #outcomeOf<T>(work: () => T, index: number): Outcome<T> {
    try {
      return { done: true, value: work() }
    } catch (error) {
      if (!this.#database.inTransaction) throw new TransactionLost(index, error)
      this.#undo.run()
      this.#remembered?.undone()
      return { done: false, error }
    }
  }

  /** The version is read where the file is locked already: to read it alone would take and give back a lock. */
  #remember(): void {
    if (this.#remembered === undefined) return
    const version = this.#dataVersion.get() as number
    this.#version = version
    this.#remembered.begun(version)
  }

  /** SQLite ignores the setting within a transaction, so it is made before. */
  #choose(durability: Durability): void {
    if (durability === this.#durability) return
    this.#database.exec(`pragma synchronous = ${durability === 'barrier' ? 'full' : 'normal'}`)
    this.#durability = durability
  }
}

/** SQLite has ended the transaction because of the work at `index`. */
class TransactionLost extends Error {
  readonly index: number
  constructor(index: number, cause: unknown) {
    super('the transaction is lost', { cause })
    this.index = index
  }
}
