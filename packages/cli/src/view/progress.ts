import type { CommandContext } from '../command-context.ts'
import { counted } from './run-ending.ts'

/** How far long work is, on one line of the terminal that goes away again. */
export interface Progress {
  /** So much more is done. */
  readonly add: (done: number) => void
  /** Takes the line away, so that something else can be written. */
  readonly clear: () => void
}

/** The line is written anew at most so often, in milliseconds. */
const pauseMs = 100

/** Shows progress where stderr is a terminal; elsewhere it does nothing, and nobody counts the whole. */
export async function progressOf(
  { progress: write, now }: CommandContext,
  noun: string,
  countAll: () => Promise<number>,
): Promise<Progress> {
  if (write === undefined) return { add: () => {}, clear: () => {} }
  const all = counted(await countAll(), noun)
  let done = 0
  let shownAt = -Infinity
  let shown = false
  return {
    add(more) {
      done += more
      if (now() - shownAt < pauseMs) return
      shownAt = now()
      shown = true
      write(`\r\u001B[K${done} of ${all}`)
    },
    clear() {
      if (shown) write('\r\u001B[K')
      shown = false
    },
  }
}
