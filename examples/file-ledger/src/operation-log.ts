import { promisify } from 'node:util'
import { closeSync, fsync, fsyncSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { RunId, RuntimeEvent } from '@tallystick/core'
import type {
  AppendOptions,
  ExpectedHead,
  InboxEntry,
  LeaseClaim,
  RunWait,
  TakeOverClaim,
} from '@tallystick/core/vocabulary'

/** One change of the ledger, as one line of the file. */
export type Operation =
  | {
      readonly do: 'append'
      readonly runId: RunId
      readonly expected: ExpectedHead
      readonly events: readonly RuntimeEvent[]
      readonly consumedInboxKeys?: AppendOptions['consumedInboxKeys']
      readonly lease?: AppendOptions['lease']
      readonly wakes?: AppendOptions['wakes']
      /** When it was made, in milliseconds since 1970 UTC. Leases begin then. */
      readonly leasedAt?: number
    }
  | {
      readonly do: 'acquire'
      readonly runId: RunId
      readonly claim?: TakeOverClaim | undefined
      readonly leasedAt?: number
    }
  | {
      readonly do: 'renew'
      readonly runIds: readonly RunId[]
      readonly claim: LeaseClaim
      readonly leasedAt: number
    }
  | {
      readonly do: 'release'
      readonly runId: RunId
      readonly holder: string
      readonly wait?: RunWait | undefined
    }
  | { readonly do: 'put'; readonly runId: RunId; readonly entry: InboxEntry }

const pieceBytes = 1 << 20

/** How long a line may wait for a sync, in milliseconds. It may hold a paid reply, and no other sync may follow soon. */
const maxUnsyncedMs = 200

/** Timers and syncs of a log; a test passes its own. */
export interface OperationLogHost {
  /** Calls back after this many milliseconds, unless the returned function is called first. */
  readonly schedule: (delayMs: number, callback: () => void) => () => void
  /** Syncs what was written to the open file. */
  readonly sync: (file: number) => Promise<void>
}

const thisHost: OperationLogHost = {
  schedule(delayMs, callback) {
    // If the process ends, the machine still holds what it wrote.
    const timer = globalThis.setTimeout(callback, delayMs).unref()
    return () => clearTimeout(timer)
  },
  sync: promisify(fsync),
}

/** A file of operations, one JSON value per line. A line without an end was cut off by a crash and never acknowledged. */
export class OperationLog {
  readonly #path: string
  readonly #file: number
  #readTo = 0
  #lastTurn: Promise<unknown> = Promise.resolve()
  readonly #host: OperationLogHost
  /** Cancels the sync that is due for what was written without one. */
  #cancelSync: (() => void) | undefined
  #syncing: Promise<void> = Promise.resolve()
  #syncFailure: { readonly error: unknown } | undefined

  constructor(path: string, host: OperationLogHost = thisHost) {
    this.#host = host
    this.#path = path
    this.#file = openSync(path, 'a+')
  }

  /** Returns the operations that were written since the last call, by this process or another. */
  news(): readonly Operation[] {
    const pieces: Buffer[] = []
    for (let at = this.#readTo; ;) {
      const piece = Buffer.alloc(pieceBytes)
      const length = readSync(this.#file, piece, 0, pieceBytes, at)
      if (length === 0) break
      pieces.push(piece.subarray(0, length))
      at += length
    }
    const bytes = Buffer.concat(pieces)
    const whole = bytes.subarray(0, bytes.lastIndexOf(10) + 1)
    this.#readTo += whole.length
    return whole
      .toString()
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Operation]))
  }

  /**
   * Writes an operation after everything that `news` has returned. With `sync`, it is on the disk when this returns; without,
   * soon. Throws once a sync has failed, since what the disk holds is then unknown.
   */
  write(operation: Operation, sync: boolean): void {
    if (this.#syncFailure) throw this.#syncFailure.error
    // The bytes after the last whole line were cut off by a crash.
    ftruncateSync(this.#file, this.#readTo)
    const line = Buffer.from(`${JSON.stringify(operation)}\n`)
    for (let written = 0; written < line.length;) {
      written += writeSync(this.#file, line, written, line.length - written)
    }
    if (sync) this.#sync()
    else this.#cancelSync ??= this.#host.schedule(maxUnsyncedMs, () => this.#syncBeside())
    this.#readTo += line.length
  }

  /** Runs `work` while no other writer of the file, in this process or another, can write. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(async () => {
      const lock = `${this.#path}.lock`
      while (!isTaken(lock)) await setTimeout(1)
      try {
        return await work()
      } finally {
        rmSync(lock)
      }
    })
    this.#lastTurn = turn.catch(() => {})
    return turn
  }

  async close(): Promise<void> {
    this.#cancelSync?.()
    await this.#syncing
    this.#sync()
    closeSync(this.#file)
  }

  #sync(): void {
    this.#cancelSync?.()
    this.#cancelSync = undefined
    fsyncSync(this.#file)
  }

  /** Syncs in the background what was written so far. Later writes wait for their own sync. */
  #syncBeside(): void {
    this.#cancelSync = undefined
    this.#syncing = this.#host.sync(this.#file).catch((error: unknown) => {
      this.#syncFailure = { error }
    })
  }
}

/**
 * Makes the lock file; `false` if another writer has it. After a crash it is still there, and a person has to remove it.
 */
function isTaken(lock: string): boolean {
  try {
    closeSync(openSync(lock, 'wx'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
