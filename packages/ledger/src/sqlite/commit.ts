import type { AppendOptions } from '@tallystick/core/vocabulary'
import type { Database, Statement } from 'better-sqlite3'
import type { RunCell } from '../format/chain.ts'
import { schemaVersion } from './schema.ts'

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
  readonly #touch: Statement
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
    // Writes the first page again, as it is.
    this.#touch = database.prepare(`pragma user_version = ${schemaVersion}`)
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
      const before = durability === 'barrier' ? this.#rowsWritten.get() : undefined
      result = work()
      // A commit that writes nothing syncs nothing, and what is lazy may be another process's.
      if (before !== undefined && this.#rowsWritten.get() === before) this.#touch.run()
      this.#commit.run()
      this.#hasUnsynced = durability === 'lazy'
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

/** Something to write that may share its transaction with others. */
export interface Write<T> {
  readonly durability: Durability
  /** Rows and bytes that it adds to a group. */
  readonly events: number
  readonly bytes: number
  /** What it writes beside some pages that it changes, at most; unknown if absent. */
  readonly mostBytes?: number
  /** Done within a transaction; again within another where that one was lost. */
  readonly work: () => T
}

/** What a group may hold; one write alone may be larger. The process does nothing else meanwhile. */
const maxWrites = 256
const maxEvents = 2_048
const maxBytes = 8 * 1024 * 1024

/** More than the pages that a write changes, beside its bodies. */
const pagesOfAWrite = 16 * 4096

interface Waiting extends Write<unknown> {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets writes of many runs share transactions and syncs. A commit stops the process until the disk has answered, and
 * the signals that arrive meanwhile are handled in one turn of the event loop: all writes of a turn go into one
 * transaction at its end. No write waits longer for others to join.
 *
 * Each write keeps its own result: a failed one is undone, and the others stay. If the commit fails, every write of
 * the group fails. Nothing is acknowledged before the commit, and all writes in the order in which they came.
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
    const [only, ...others] = group
    if (only === undefined) return
    const durability = group.some((write) => write.durability === 'barrier') ? 'barrier' : 'lazy'
    const written = group.reduce((sum, { mostBytes = Infinity }) => sum + mostBytes + pagesOfAWrite, 0)
    try {
      if (others.length === 0)
        return only.resolve(this.#transactions.transact(durability, only.work, written))
      const outcomes = this.#transactions.transactAll(
        durability,
        group.map(({ work }) => work),
        written,
      )
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.done) group[index]?.resolve(outcome.value)
        else group[index]?.reject(outcome.error)
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }
}

/** More runs than a process drives at a time. */
const maxRuns = 4_096

/**
 * The rows of runs as this connection wrote them last, and the last place that it gave to an event, so that an append need
 * not ask for them. Whatever another connection commits changes the version of the data, and lets all of it be read anew.
 */
export class KnownHeads implements Remembered {
  readonly #cells = new Map<string, RunCell>()
  #lastPlace: number | undefined
  #version: number | undefined

  /** The place of the last event of the file; `undefined` where it has to be read. */
  get lastPlace(): number | undefined {
    return this.#lastPlace
  }

  /** The row of a run; `undefined` where it has to be read. */
  get(runId: string): RunCell | undefined {
    return this.#cells.get(runId)
  }

  begun(version: number): void {
    if (version !== this.#version) this.forgetAll()
    this.#version = version
  }

  undone(): void {
    this.forgetAll()
  }

  /** To be called within the transaction that writes the row and, at this place, the last event. */
  wrote(cell: RunCell, lastPlace: number): void {
    this.#lastPlace = lastPlace
    this.#cells.delete(cell.run_id)
    this.#cells.set(cell.run_id, cell)
    if (this.#cells.size <= maxRuns) return
    const [oldest] = this.#cells.keys()
    if (oldest !== undefined) this.#cells.delete(oldest)
  }

  /** To be called by all else that writes the row of a run. */
  forget(runId: string): void {
    this.#cells.delete(runId)
  }

  forgetAll(): void {
    this.#cells.clear()
    this.#lastPlace = undefined
  }
}
