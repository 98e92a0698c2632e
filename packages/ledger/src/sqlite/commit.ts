import type { Database, Statement } from 'better-sqlite3'
import type { Durability } from '../store/database.ts'
import { schemaVersion } from './schema.ts'

/** Hooks around each transaction. */
export interface AroundCommits {
  /** Called before it begins. If it throws, nothing is written. */
  admit(durability: Durability): void
  /** Called after the commit. If it throws, the committing call throws too: its writes are not acknowledged. */
  committed(durability: Durability): void
}

const nothingAround: AroundCommits = { admit: () => {}, committed: () => {} }

/**
 * Runs transactions that hold the write lock from their start, and makes them durable as asked. The write-ahead log
 * is one file, written in order: syncing it for a barrier hardens every lazy commit before it.
 */
export class Transactions {
  readonly #database: Database
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #rowsWritten: Statement<[], number>
  readonly #touch: Statement
  readonly #around: AroundCommits
  #durability: Durability = 'barrier'
  #hasUnsynced = false

  constructor(database: Database, around: AroundCommits = nothingAround) {
    this.#database = database
    this.#around = around
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
    this.#rollback = database.prepare('rollback')
    this.#rowsWritten = database.prepare<[], number>('select total_changes()').pluck()
    // Writes the first page again, as it is.
    this.#touch = database.prepare(`pragma user_version = ${schemaVersion}`)
  }

  /** There may be lazy commits that no barrier has hardened yet. */
  get hasUnsynced(): boolean {
    return this.#hasUnsynced
  }

  /** Commits the work, or undoes it if it throws. */
  transact<T>(durability: Durability, work: () => T): T {
    this.#around.admit(durability)
    this.#choose(durability)
    this.#begin.run()
    let result: T
    try {
      const before = durability === 'barrier' ? this.#rowsWritten.get() : undefined
      result = work()
      // A commit that writes nothing syncs nothing, and lazy commits may be those of another process.
      if (before !== undefined && this.#rowsWritten.get() === before) this.#touch.run()
      this.#commit.run()
      this.#hasUnsynced = durability === 'lazy'
    } catch (error) {
      if (this.#database.inTransaction) this.#rollback.run()
      throw error
    }
    this.#around.committed(durability)
    return result
  }

  /** SQLite ignores the setting within a transaction, so it is made before. */
  #choose(durability: Durability): void {
    if (durability === this.#durability) return
    this.#database.exec(`pragma synchronous = ${durability === 'barrier' ? 'full' : 'normal'}`)
    this.#durability = durability
  }
}

/** Something to write that may share its transaction with others. */
export interface Write<T> {
  readonly durability: Durability
  /** Rows and bytes that it adds to a group. */
  readonly events: number
  readonly bytes: number
  /** Done within a transaction; again within another if that one was undone. */
  readonly work: () => T
}

/** Bounds of a group, during which the process does nothing else; one write alone may be larger. */
const maxWrites = 256
const maxEvents = 2_048
const maxBytes = 8 * 1024 * 1024

interface Waiting extends Write<unknown> {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets writes of many runs share transactions and syncs. A commit stops the process until the disk has answered, and
 * the signals that arrive until then are handled in one turn of the event loop: all writes of a turn go into one
 * transaction at its end. No write waits longer for others to join.
 *
 * Each write keeps its own result: if one throws, all are undone, and each is done again in a transaction of its own. If the
 * commit fails, every write of the group fails. Writes are acknowledged after the commit, in the order in which they came.
 */
export class GroupCommit {
  readonly #transactions: Transactions
  #waiting: Waiting[] = []
  #turn: Promise<void> | undefined

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  submit<T>(write: Write<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ ...write, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /**
   * Resolves when the next group is committed; `undefined` if no write waits. Readers await it: the turn of the event
   * loop would never end for a caller that only reads and awaits nothing else.
   */
  get turn(): Promise<void> | undefined {
    return this.#turn
  }

  /** Carries out all that waits, now. */
  flush(): void {
    while (this.#waiting.length > 0) this.#carryOut(this.#nextGroup())
  }

  #schedule(): void {
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#turn = undefined
        this.#carryOut(this.#nextGroup())
        if (this.#waiting.length > 0) this.#schedule()
        resolve()
      })
    })
  }

  #nextGroup(): readonly Waiting[] {
    let [length, events, bytes] = [0, 0, 0]
    for (const write of this.#waiting) {
      events += write.events
      bytes += write.bytes
      if (length > 0 && (length === maxWrites || events > maxEvents || bytes > maxBytes)) break
      length++
    }
    return this.#waiting.splice(0, length)
  }

  #carryOut(group: readonly Waiting[]): void {
    if (group.length === 0) return
    const durability = group.some((write) => write.durability === 'barrier') ? 'barrier' : 'lazy'
    let isCommitting = false
    const workAll = (): readonly unknown[] => {
      const values = group.map(({ work }) => work())
      isCommitting = true
      return values
    }
    try {
      const values = this.#transactions.transact(durability, workAll)
      for (const [index, { resolve }] of group.entries()) resolve(values[index])
    } catch (error) {
      if (isCommitting || group.length === 1) for (const { reject } of group) reject(error)
      // One of them is at fault, and the others must not suffer for it.
      else for (const write of group) this.#carryOut([write])
    }
  }
}
