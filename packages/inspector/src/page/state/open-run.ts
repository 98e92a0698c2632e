import { computed, effect, signal } from '@preact/signals'
import { proxy, type Remote, wrap } from 'comlink'
import type { EventLine, Moment } from '../worker/moment.ts'
import type { Progress, RunWorkerApi } from '../worker/run-worker.ts'
import type { Waits } from '../worker/waits.ts'
// oxlint-disable-next-line import/default -- Vite makes this module of the query.
import RunWorker from '../worker/run-worker.ts?worker&inline'
import { go, route, runId } from './route.ts'
import { source } from './source.ts'

/** Reads and folds the run that is open. */
export const worker: Remote<RunWorkerApi> = wrap<RunWorkerApi>(new RunWorker())

/** The events of the open run, one line each. The list only grows; `lastSeq` says how far it is. */
export const lines: EventLine[] = []
export const lastSeq = signal(0)
export const isEnded = signal(false)
export const runTrouble = signal<string | undefined>(undefined)
export const runFault = signal<Progress['fault']>(undefined)

/** The event that is looked at: that of the address, else the last one. */
export const seq = computed(() => Math.min(route.value.at ?? lastSeq.value, lastSeq.value))
/** Whether the page follows the end of the run. */
export const isLive = computed(() => route.value.at === undefined)

/**
 * The same event, once the slider rests there. What takes long to draw follows this one: a slider in motion passes more events than
 * can be drawn in their time.
 */
export const restingSeq = signal(0)
const restMs = 80

/** The run right after that event, as soon as it is known. */
export const moment = signal<Moment | undefined>(undefined)

/** What the run waits for at its last event. */
export const waits = signal<Waits | undefined>(undefined)

export function goTo(next: number): void {
  const last = lastSeq.peek()
  if (last > 0) go({ at: Math.max(1, Math.min(last, Math.round(next))) })
}

/** Opens the run of the address, whenever it changes, and keeps the moment that is looked at. */
export function keepOpenRun(): () => void {
  const stopRun = effect(() => {
    const id = runId.value
    const from = source.value
    lines.length = 0
    lastSeq.value = 0
    isEnded.value = false
    moment.value = undefined
    runTrouble.value = undefined
    runFault.value = undefined
    waits.value = undefined
    if (id === undefined) return
    const take = (progress: Progress): void => {
      if (runId.peek() !== id) return
      for (const line of progress.lines) lines.push(line)
      lastSeq.value = progress.lastSeq
      isEnded.value = progress.isEnded
      runTrouble.value = progress.trouble
      runFault.value = progress.fault
    }
    worker.open(from.locateRun(id), proxy(take)).catch((error: Error) => (runTrouble.value = error.message))
  })
  let isBusy = false
  const stopMoment = effect(() => {
    void seq.value
    void readMoment()
  })
  /** One request at a time: while the slider moves, what is between is left out. */
  async function readMoment(): Promise<void> {
    if (isBusy) return
    isBusy = true
    try {
      for (let at = seq.peek(); at > 0 && moment.peek()?.seq !== at; at = seq.peek()) {
        const id = runId.peek()
        const read = await worker.readMoment(at)
        if (runId.peek() !== id) continue
        if (read === undefined) break
        moment.value = read
      }
    } finally {
      isBusy = false
    }
  }
  let movedAt = -Infinity
  let rest: ReturnType<typeof setTimeout> | undefined
  const stopResting = effect(() => {
    const at = seq.value
    const now = performance.now()
    clearTimeout(rest)
    // One step is shown at once.
    if (now - movedAt > restMs) restingSeq.value = at
    else rest = setTimeout(() => (restingSeq.value = at), restMs)
    movedAt = now
  })
  const stopWaits = effect(() => {
    if (lastSeq.value === 0) return
    const id = runId.peek()
    void worker.readWaits().then((read) => {
      if (runId.peek() === id) waits.value = read
    })
  })
  return () => {
    stopRun()
    stopMoment()
    stopResting()
    clearTimeout(rest)
    stopWaits()
  }
}
