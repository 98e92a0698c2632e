import type { Rest, RunId } from '@tallystick/core'
import type { Drive, Wake } from '../../src/engine.ts'

/** A run that a worker was told to drive. It is driven until the test ends the call. */
export interface DriveCall {
  readonly wake: Wake
  readonly signal: AbortSignal
  readonly end: () => void
  readonly fail: () => void
}

/** Drives that the test takes, in the order in which they began, and ends. */
export interface WatchedDrive {
  readonly drive: Drive
  /** The ids of the runs of all drives. */
  readonly begun: readonly string[]
  /** The next drive that the test has not taken, which may be to come. */
  next(): Promise<DriveCall>
}

export function watchDrives(): WatchedDrive {
  const begun: string[] = []
  const calls: DriveCall[] = []
  const takers: ((call: DriveCall) => void)[] = []
  return {
    begun,
    drive: (wake, signal) =>
      new Promise<Rest>((resolve, reject) => {
        begun.push(wake.runId)
        const call: DriveCall = {
          wake,
          signal,
          end: () => resolve({ status: 'done', runId: wake.runId, seq: 1, pending: false }),
          fail: () => reject(new Error('The drive fails.')),
        }
        const take = takers.shift()
        if (take) take(call)
        else calls.push(call)
      }),
    next() {
      const call = calls.shift()
      return call ? Promise.resolve(call) : new Promise((resolve) => takers.push(resolve))
    },
  }
}

export const runId = (name: string): RunId => name as RunId
