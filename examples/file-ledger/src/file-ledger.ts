import {
  concatMap,
  ignoreElements,
  interval,
  merge,
  type Observable,
  ReplaySubject,
  Subject,
  takeUntil,
} from 'rxjs'
import { LedgerUnavailableError, memoryLedger, type Ledger } from '@tallystick/core'
import { OperationLog, type Operation } from './operation-log.ts'

/** How often a watched ledger checks whether another process has written, in milliseconds. */
const lookEveryMs = 20

/**
 * A ledger in one append-only file. A memory ledger, which knows all the rules, decides every change; the file gets the change
 * before it is acknowledged. Reopening the file replays its changes.
 */
export function fileLedger(path: string): Ledger {
  const file = new RecordedMemory(path)
  const { memory } = file
  return {
    append: (runId, expected, events, { durability, consumedInboxKeys = [], lease, wakes }) =>
      file.change(
        { do: 'append', runId, expected, events, consumedInboxKeys, lease, wakes, leasedAt: Date.now() },
        durability === 'barrier',
        () => memory.append(runId, expected, events, { durability, consumedInboxKeys, lease, wakes }),
      ),
    acquire: (runId, claim) =>
      file.change({ do: 'acquire', runId, claim, leasedAt: Date.now() }, true, () =>
        memory.acquire(runId, claim),
      ),
    lease: (runId) => file.answer(() => memory.lease(runId)),
    renew: (runIds, claim) =>
      file.change({ do: 'renew', runIds, claim, leasedAt: Date.now() }, false, () =>
        memory.renew(runIds, claim),
      ),
    release: (runId, holder, wait) =>
      file.change({ do: 'release', runId, holder, wait }, false, () => memory.release(runId, holder, wait)),
    put: (runId, entry, options) =>
      file.change({ do: 'put', runId, entry }, true, () => memory.put(runId, entry, options)),
    head: (runId) => file.answer(() => memory.head(runId)),
    inbox: (runId) => file.answer(() => memory.inbox(runId)),
    read: (runId, range) => file.items(() => memory.read(runId, range)),
    find: (query) => file.items(() => memory.find(query)),
    runs: (filter) => file.items(() => memory.runs(filter)),
    due: (filter) => file.items(() => memory.due(filter)),
    tail: (after) => file.items(() => memory.tail(after)),
    changes: (runId) => merge(memory.changes(runId), file.changes()),
    close: () => file.close(),
  }
}

/** A memory ledger, and the file of all changes made to it. */
class RecordedMemory {
  readonly memory: Ledger = memoryLedger({ clock: { now: () => this.#madeAt ?? Date.now() } })
  /** When the change that is being replayed was made. */
  #madeAt: number | undefined
  readonly #path: string
  readonly #log: OperationLog
  readonly #seen = new Subject<void>()
  /** Completes what `changes` returned, also for later subscribers. */
  readonly #ended = new ReplaySubject<void>(1)
  #caughtUp: Promise<void> = Promise.resolve()
  #closed = false
  /** Set if the file may differ from memory: from then on every call fails. */
  #failed = false

  constructor(path: string) {
    this.#path = path
    this.#log = new OperationLog(path)
  }

  /** Decides a change, writes it, and only then acknowledges it. */
  change<T>(operation: Operation, sync: boolean, decide: () => Promise<T>): Promise<T> {
    return this.#log.exclusively(async () => {
      await this.#catchUp()
      const decided = await decide()
      this.#write(operation, sync)
      this.#seen.next()
      return decided
    })
  }

  /** Asks memory, once it has caught up with other ledgers of this file. */
  async answer<T>(ask: () => Promise<T>): Promise<T> {
    await this.#catchUp()
    return await ask()
  }

  async *items<T>(list: () => AsyncIterable<T>): AsyncGenerator<T> {
    await this.#catchUp()
    yield* list()
  }

  /** Emits when other ledgers of this file have written. */
  changes(): Observable<void> {
    const looks = interval(lookEveryMs).pipe(
      concatMap(() => this.#catchUp().catch(() => {})),
      ignoreElements(),
    )
    return merge(looks, this.#seen).pipe(takeUntil(this.#ended))
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.memory.close()
    this.#ended.next()
    await this.#log.close()
  }

  #catchUp(): Promise<void> {
    const next = this.#caughtUp.then(async () => {
      this.#requireUsable()
      const news = this.#log.news()
      for (const operation of news) await this.#apply(operation)
      if (news.length > 0) this.#seen.next()
    })
    // One at a time: an operation must find memory as the previous one left it.
    this.#caughtUp = next.catch(() => {})
    return next
  }

  async #apply(operation: Operation): Promise<void> {
    this.#madeAt = 'leasedAt' in operation ? operation.leasedAt : undefined
    const made = this.#make(operation)
    this.#madeAt = undefined
    await made
  }

  /** Lets memory decide, at the time of the change. */
  #make(operation: Operation): Promise<unknown> {
    const { memory } = this
    switch (operation.do) {
      case 'append': {
        const { runId, expected, events, consumedInboxKeys = [], lease, wakes } = operation
        return memory.append(runId, expected, events, {
          ...{ durability: 'barrier', consumedInboxKeys, lease, wakes },
        })
      }
      case 'acquire':
        return memory.acquire(operation.runId, operation.claim)
      case 'renew':
        return memory.renew(operation.runIds, operation.claim)
      case 'release':
        return memory.release(operation.runId, operation.holder, operation.wait)
      case 'put':
        return memory.put(operation.runId, operation.entry)
    }
  }

  #write(operation: Operation, sync: boolean): void {
    try {
      this.#log.write(operation, sync)
    } catch (error) {
      this.#failed = true
      throw new LedgerUnavailableError(`The ledger ${this.#path} could not be written. Open it again.`, {
        cause: error,
      })
    }
  }

  #requireUsable(): void {
    if (this.#closed) throw new LedgerUnavailableError(`The ledger ${this.#path} is closed.`)
    if (this.#failed) {
      throw new LedgerUnavailableError(`The ledger ${this.#path} could not be written. Open it again.`)
    }
  }
}
