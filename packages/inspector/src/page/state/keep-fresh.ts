import { effect } from '@preact/signals'
import { lastSeq } from './open-run.ts'
import { runId } from './route.ts'

/** What is read anew of the open run as its events come. */
export interface Fresh {
  /** It is read again at most this often; of a long run less often, by how long the last time took. */
  readonly everyMs: number
  /** Forgets what was read of another run. */
  readonly reset: () => void
  /** Reads it. Ask `isCurrent` after each wait: the page may show another run by then. */
  readonly read: (id: string, isCurrent: () => boolean) => Promise<void>
}

/** Keeps something of the open run as its events come. Returns how to stop. */
export function keepFresh({ everyMs, reset, read }: Fresh): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let of: string | undefined
  let pauseMs = 0
  const readNow = async (): Promise<void> => {
    timer = undefined
    const id = runId.peek()
    if (id === undefined) return
    const since = performance.now()
    await read(id, () => id === runId.peek())
    pauseMs = Math.max(everyMs, 10 * (performance.now() - since))
  }
  const stop = effect(() => {
    const id = runId.value
    if (id !== of) {
      of = id
      pauseMs = 0
      reset()
    }
    if (lastSeq.value > 0) timer ??= setTimeout(() => void readNow(), pauseMs)
  })
  return () => {
    stop()
    clearTimeout(timer)
  }
}
