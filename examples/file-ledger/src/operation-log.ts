import { closeSync, fsyncSync, ftruncateSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import type { RunId, RuntimeEvent } from '@tallystick/core'
import type { AppendOptions, ExpectedHead, InboxEntry } from '@tallystick/core/vocabulary'

/** One change of the ledger, as a line of the file holds it. */
export type Operation =
  | {
      readonly do: 'append'
      readonly runId: RunId
      readonly expected: ExpectedHead
      readonly events: readonly RuntimeEvent[]
      readonly consumedInboxKeys?: AppendOptions['consumedInboxKeys']
    }
  | { readonly do: 'acquire'; readonly runId: RunId }
  | { readonly do: 'put'; readonly runId: RunId; readonly entry: InboxEntry }

const pieceBytes = 1 << 20

/** A file of operations, one JSON a line. A line without its end was cut off by a crash, and was never acknowledged. */
export class OperationLog {
  readonly #path: string
  readonly #file: number
  #readTo = 0
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(path: string) {
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

  /** Writes an operation after all that `news` has returned. With `sync`, the disk holds it when this returns. */
  write(operation: Operation, sync: boolean): void {
    // A crash cut off the bytes after the last whole line.
    ftruncateSync(this.#file, this.#readTo)
    const line = Buffer.from(`${JSON.stringify(operation)}\n`)
    for (let written = 0; written < line.length;) {
      written += writeSync(this.#file, line, written, line.length - written)
    }
    if (sync) fsyncSync(this.#file)
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

  close(): void {
    fsyncSync(this.#file)
    closeSync(this.#file)
  }
}

/**
 * Makes the lock file; `false` where another writer has it. After a crash it is still there: then a person removes it.
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
