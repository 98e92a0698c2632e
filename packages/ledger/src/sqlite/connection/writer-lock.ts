import { realpathSync } from 'node:fs'
import { LedgerUnavailableError } from '@tallystick/core'
import { requireFilePath } from '../schema/inspect-file.ts'
import { wait } from './wait.ts'
import { WriterFile, type Writer } from './writer-file.ts'

/** Unless another time is given, processes that write for a moment follow each other within this one. */
const patienceMs = 1_000
const retryMs = 20

/**
 * What a ledger has of the role of the one process that writes its file: that appends to runs, and takes them over. A
 * process has the role as long as a run of it is under way, in whatever ledger that has the file open there.
 */
export class WriterLock {
  readonly #lock: ProcessLock
  readonly #patienceMs: number
  /** Under way, with the epochs of their writers. */
  readonly #runs = new Map<string, number>()

  /** Throws what the file system throws where the ledger's file is not there. */
  constructor(path: string, busyTimeoutMs: number = patienceMs) {
    this.#lock = processLock(realpathSync(path))
    this.#patienceMs = busyTimeoutMs
    this.#lock.ledgers.add(this)
  }

  get isEmpty(): boolean {
    return this.#runs.size === 0
  }

  /** Whether this process has the role. */
  get isHeld(): boolean {
    return this.#lock.isHeld
  }

  /** Whether a run of this process is under way. */
  has(runId: string): boolean {
    return this.#runs.has(runId)
  }

  /**
   * Whether a process drives a run; `undefined` where another process has the role, which may be driving any. Processes
   * that opened the file with `oneWriter: false` say nothing, and are not known of.
   */
  isDriven(runId: string): boolean | undefined {
    return this.#lock.isDriven(runId)
  }

  /** The writer of this epoch has the run. */
  register(runId: string, epoch: number): void {
    this.#runs.set(runId, Math.max(epoch, this.#runs.get(runId) ?? 0))
  }

  /**
   * Calls `write`, by which the writer of this epoch appends to a run or takes it over: the run is under way from then
   * on, unless this fails and it was not before. Throws `LedgerUnavailableError` if another process has the role, for
   * longer than a moment.
   */
  async drive<T>(runId: string, epoch: number, write: () => Promise<T>): Promise<T> {
    const isNew = !this.has(runId)
    this.register(runId, epoch)
    try {
      // Taken at once where it is free: an append that waited here would be overtaken by one that begins after it.
      if (!this.#lock.isHeld && !this.#lock.takeFree()) await this.#lock.take(this.#patienceMs)
      return await write()
    } catch (error) {
      if (isNew) this.release(runId, epoch)
      throw error
    }
  }

  /** A run is under way no more, as far as the writer of this epoch goes. */
  release(runId: string, epoch: number = Infinity): void {
    const held = this.#runs.get(runId)
    if (held === undefined || held > epoch) return
    this.#runs.delete(runId)
    this.#lock.giveBack()
  }

  /** Its runs claim the role no longer. Where no ledger of the process has the file open, nothing of the role stays. */
  leave(): void {
    this.#lock.ledgers.delete(this)
    this.#lock.giveBack()
    this.#lock.end()
  }
}

/** The role as all ledgers of a process share it. */
class ProcessLock {
  readonly ledgers = new Set<Pick<WriterLock, 'isEmpty' | 'has'>>()
  readonly #path: string
  readonly #file: WriterFile
  #isHeld = false
  #taking: Promise<void> | undefined

  constructor(path: string) {
    this.#path = path
    this.#file = new WriterFile(path)
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  isDriven(runId: string): boolean | undefined {
    if ([...this.ledgers].some((ledger) => ledger.has(runId))) return true
    if (this.#isHeld) return false
    try {
      return hasWriter(this.#path) ? undefined : false
    } catch {
      // Who may not ask does not know.
      return undefined
    }
  }

  /** Takes the role if no process has it, and none of this process waits for it; returns whether it is held now. */
  takeFree(): boolean {
    if (this.#taking === undefined && this.#isNeeded) this.#isHeld = this.#file.lock()
    return this.#isHeld
  }

  /** Resolves with the role held, if a ledger of this process still claims it. */
  async take(patience: number): Promise<void> {
    while (!this.#isHeld && this.#isNeeded) {
      this.#taking ??= this.#takeLock(patience).finally(() => {
        this.#taking = undefined
        if (this.ledgers.size === 0) this.end()
      })
      await this.#taking
    }
  }

  giveBack(): void {
    if (this.#isNeeded) return
    this.#isHeld = false
    this.#file.unlock()
  }

  /** What stays beside the ledger goes, where no process writes it. */
  end(): void {
    if (this.#isHeld || this.#taking) return
    this.#file.remove()
    if (this.ledgers.size === 0) locksOfProcess().delete(this.#path)
  }

  get #isNeeded(): boolean {
    return [...this.ledgers].some(({ isEmpty }) => !isEmpty)
  }

  async #takeLock(patience: number): Promise<void> {
    // Once more at least: the other process may only have checked for a writer.
    const givenUpAt = performance.now() + Math.max(patience, retryMs)
    while (!this.#file.lock()) {
      if (performance.now() >= givenUpAt) throw occupied(this.#path, this.#file.writer())
      await wait(retryMs)
    }
    this.#isHeld = true
    // The ledger that waited for it may be closed by now.
    this.giveBack()
  }
}

const locksKey: unique symbol = Symbol.for('tallystick.ledger.sqlite-writer-roles.1')

/** The roles of this process by file, whichever copies of this module are loaded into it. */
function locksOfProcess(): Map<string, ProcessLock> {
  const shared = globalThis as { [locksKey]?: Map<string, ProcessLock> }
  return (shared[locksKey] ??= new Map())
}

function processLock(path: string): ProcessLock {
  const locks = locksOfProcess()
  const lock = locks.get(path) ?? new ProcessLock(path)
  locks.set(path, lock)
  return lock
}

/**
 * Whether a process writes an existing ledger file: it drives runs there, or has not released them. `undefined` if no
 * process has claimed the file since it was last closed, or if it was opened with `oneWriter: false`. Throws
 * `LedgerUnavailableError` if the check fails, or there is no such file.
 */
export function hasWriter(path: string): boolean | undefined {
  requireFilePath(path, 'hasWriter')
  return new WriterFile(existingPath(path)).isLocked()
}

function existingPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    throw new LedgerUnavailableError(
      `The ledger ${path} is not there, or its folder cannot be read, so it is not known whether a process writes it. Look at the path.`,
      { cause: error },
    )
  }
}

function occupied(path: string, writer: Writer | undefined): LedgerUnavailableError {
  const who = writer
    ? `process ${writer.pid} on ${writer.host}, since ${new Date(writer.since).toISOString()}`
    : 'another process, which has not said who it is'
  return new LedgerUnavailableError(
    `The ledger ${path} is being written by ${who}. One process at a time drives the runs of a file, so this one ` +
      'recorded no event. Let the other one end, or its runs stop. A command (approve, deny, cancel, steer) needs only ' +
      'the inbox of its run: runtime.send() has put it there already, and ledger.put() and the command line do so, too. ' +
      'The process that drives the run, now or next, decides about it. If several processes have to drive runs, ' +
      'open the ledger with oneWriter: false, which is slower, or use postgresLedger().',
  )
}
