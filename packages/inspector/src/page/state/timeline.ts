import { signal } from '@preact/signals'
import type { Timeline } from '../worker/timeline.ts'
import { keepFresh } from './keep-fresh.ts'
import { worker } from './open-run.ts'
import { runId } from './route.ts'
import { source } from './source.ts'

/** The open run over time. */
export const timeline = signal<Timeline | undefined>(undefined)
/** The child runs that are unfolded, over time, by their ids. */
export const childTimelines = signal<ReadonlyMap<string, Timeline>>(new Map())
/** Why a child run could not be read. */
export const childTrouble = signal<string | undefined>(undefined)

/** Keeps the timeline of the open run as its events come. */
export function keepTimeline(): () => void {
  return keepFresh({
    everyMs: 250,
    reset() {
      timeline.value = undefined
      childTimelines.value = new Map()
      childTrouble.value = undefined
    },
    async read(_id, isCurrent) {
      const made = await worker.readTimeline()
      if (!isCurrent()) return
      timeline.value = made
      await Promise.all([...childTimelines.peek().keys()].map(readChild))
    },
  })
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
