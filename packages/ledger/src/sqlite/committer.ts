import type { Database, Statement } from 'better-sqlite3'
import type { AppendOptions } from '@tallystick/core'

type Durability = AppendOptions['durability']

/**
 * Runs transactions that hold the write lock from their start, and makes them durable as asked. The write-ahead log
 * is one file, written in order: syncing it for a barrier hardens every lazy commit before it.
 */
export class Committer {
  readonly #database: Database
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #rowsWritten: Statement<[], number>
  #durability: Durability = 'barrier'
  #hasUnsynced = false

  constructor(database: Database) {
    this.#database = database
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
    this.#rollback = database.prepare('rollback')
    this.#rowsWritten = database.prepare<[], number>('select total_changes()').pluck()
  }

  /** Whether there are lazy commits that no barrier has hardened yet. */
  get hasUnsynced(): boolean {
    return this.#hasUnsynced
  }

  /** What `work` did is committed when this returns, and undone when it throws. */
  transact<T>(durability: Durability, work: () => T): T {
    this.#choose(durability)
    this.#begin.run()
    try {
      const before = this.#rowsWritten.get()
      const result = work()
      // A commit that writes nothing syncs nothing.
      const hasWritten = this.#rowsWritten.get() !== before
      this.#commit.run()
      if (hasWritten) this.#hasUnsynced = durability === 'lazy'
      return result
    } catch (error) {
      if (this.#database.inTransaction) this.#rollback.run()
      throw error
    }
  }

  /** SQLite ignores the setting within a transaction, so it is made before. */
  #choose(durability: Durability): void {
    if (durability === this.#durability) return
    this.#database.pragma(`synchronous = ${durability === 'barrier' ? 'full' : 'normal'}`)
    this.#durability = durability
  }
}
