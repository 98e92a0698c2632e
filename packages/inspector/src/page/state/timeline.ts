import { effect, signal } from '@preact/signals'
import type { Timeline } from '../worker/timeline.ts'
import { lastSeq, worker } from './open-run.ts'
import { runId } from './route.ts'
import { source } from './source.ts'

/** The open run over time. */
export const timeline = signal<Timeline | undefined>(undefined)
/** The child runs that are unfolded, over time, by their ids. */
export const childTimelines = signal<ReadonlyMap<string, Timeline>>(new Map())
/** Why a child run could not be read. */
export const childTrouble = signal<string | undefined>(undefined)

/** The timeline is read again at most this often while events come. */
const refreshMs = 250

/** Keeps the timeline of the open run as its events come. */
export function keepTimeline(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let of: string | undefined
  /** How long the last one took: of a long run it is read less often. */
  let tookMs = 0
  const read = async (): Promise<void> => {
    timer = undefined
    const id = runId.peek()
    const since = performance.now()
    const made = await worker.readTimeline()
    tookMs = performance.now() - since
    if (id !== runId.peek() || id === undefined) return
    timeline.value = made
    await Promise.all([...childTimelines.peek().keys()].map(readChild))
  }
  const stop = effect(() => {
    const id = runId.value
    if (id !== of) {
      of = id
      timeline.value = undefined
      childTimelines.value = new Map()
      childTrouble.value = undefined
    }
    if (lastSeq.value > 0)
      timer ??= setTimeout(() => void read(), timeline.peek() ? Math.max(refreshMs, 10 * tookMs) : 0)
  })
  return () => {
    stop()
    clearTimeout(timer)
  }
}

/** Reads a child run, so that its lanes can be shown. One that has ended is read once. */
export async function readChild(id: string): Promise<void> {
  if (childTimelines.peek().get(id)?.isEnded) return
  const parent = runId.peek()
  try {
    const read = await worker.readTimelineOf(source.peek().locateRun(id))
    if (runId.peek() !== parent) return
    childTimelines.value = new Map(childTimelines.peek()).set(id, read)
    childTrouble.value = undefined
  } catch (error) {
    childTrouble.value = `Run ${id} cannot be read: ${(error as Error).message}`
  }
}
