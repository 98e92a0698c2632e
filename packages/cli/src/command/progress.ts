import type { CommandContext } from './context.ts'
import { counted } from './text.ts'

/** How far long work is, on one line of the terminal that goes away again. */
export interface Progress {
  /** So much more is done. */
  readonly add: (done: number) => void
  /** The context in which the line goes away before something else is written. */
  readonly context: CommandContext
}

/** Says how far the work is: what is done, and the total if it is known. */
type ProgressText = (done: number, all: number | undefined) => string

const eventsText: ProgressText = (done, all) =>
  `${done}${all === undefined ? ' events' : ` of ${counted(all, 'event')}`}`

/** Bytes in megabytes. */
export const bytesText: ProgressText = (done, all) =>
  all === undefined ? `${megabytes(done)} MB` : `${megabytes(done)} of ${megabytes(all)} MB`

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}

/** The line is written anew at most so often, in milliseconds. */
const pauseMs = 100

/**
 * Shows progress while `work` runs, if stderr is a terminal; elsewhere it shows nothing, and does not count the total.
 */
export async function withProgress<Result>(
  context: CommandContext,
  countAll: () => Promise<number | undefined>,
  work: (progress: Progress) => Promise<Result>,
  progressText: ProgressText = eventsText,
): Promise<Result> {
  const { progress: write, now, print, say } = context
  if (write === undefined) return await work({ add: () => {}, context })
  // Of a ledger that is damaged, the work says so.
  const all = await countAll().catch(() => undefined)
  let done = 0
  let shownAt = -Infinity
  let shown = false
  const clear = (): void => {
    if (shown) write('')
    shown = false
  }
  const add = (more: number): void => {
    done += more
    if (now() - shownAt < pauseMs) return
    shownAt = now()
    shown = true
    write(progressText(done, all))
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
