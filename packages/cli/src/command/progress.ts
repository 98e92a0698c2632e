import type { CommandContext } from './context.ts'
import { formatCount } from './text.ts'

/** The progress of long work, on one line of the terminal that is cleared at the end. */
export interface Progress {
  readonly add: (done: number) => void
  /** Clears the line before something else is written. */
  readonly context: CommandContext
}

type ProgressText = (done: number, all: number | undefined) => string

const formatEvents: ProgressText = (done, all) =>
  `${done}${all === undefined ? ' events' : ` of ${formatCount(all, 'event')}`}`

export const formatBytes: ProgressText = (done, all) =>
  all === undefined ? `${toMegabytes(done)} MB` : `${toMegabytes(done)} of ${toMegabytes(all)} MB`

function toMegabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1)
}

/** The least time between two updates of the line. */
const pauseMs = 100

/**
 * Shows progress while `work` runs, if stderr is a terminal; else it shows nothing and does not count the total.
 */
export async function withProgress<Result>(
  context: CommandContext,
  countAll: () => Promise<number | undefined>,
  work: (progress: Progress) => Promise<Result>,
  progressText: ProgressText = formatEvents,
): Promise<Result> {
  const { progress: write, now, print, say } = context
  if (write === undefined) return await work({ add: () => {}, context })
  // If the ledger is damaged, the work itself says so.
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

/** Reports the bytes of a stream to `count` as they are taken. A stream with an encoding yields texts. */
export async function* countBytes(
  chunks: AsyncIterable<string | Uint8Array>,
  count: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    yield bytes
    count(bytes.length)
  }
}
