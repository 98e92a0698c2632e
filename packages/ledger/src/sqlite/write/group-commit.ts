import type { Transactions, Durability } from './transactions.ts'

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
