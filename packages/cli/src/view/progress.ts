import type { CommandContext } from '../command-context.ts'
import { counted } from './run-ending.ts'

/** How far long work is, on one line of the terminal that goes away again. */
export interface Progress {
  /** So much more is done. */
  readonly add: (done: number) => void
  /** The context in which the line goes away before something else is written. */
  readonly context: CommandContext
}

/** The line is written anew at most so often, in milliseconds. */
const pauseMs = 100

/**
 * Shows progress while `work` is at it, where stderr is a terminal; elsewhere nothing is shown, and nobody counts the
 * whole.
 */
export async function withProgress<Result>(
  context: CommandContext,
  countAll: () => Promise<number>,
  work: (progress: Progress) => Promise<Result>,
): Promise<Result> {
  const { progress: write, now, print, say } = context
  if (write === undefined) return await work({ add: () => {}, context })
  // Of a ledger that is damaged, the work says so.
  const all = await countAll().catch(() => undefined)
  const of = all === undefined ? ' events' : ` of ${counted(all, 'event')}`
  let done = 0
  let shownAt = -Infinity
  let shown = false
  const clear = (): void => {
    if (shown) write('\r\u001B[K')
    shown = false
  }
  const add = (more: number): void => {
    done += more
    if (now() - shownAt < pauseMs) return
    shownAt = now()
    shown = true
    write(`\r\u001B[K${done}${of}`)
  }
  const aside: CommandContext = {
    ...context,
    print(text) {
      clear()
      return print(text)
    },
    say(line) {
      clear()
      say(line)
    },
  }
  try {
    return await work({ add, context: aside })
  } finally {
    clear()
  }
}
