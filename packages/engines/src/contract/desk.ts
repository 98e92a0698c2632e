import type { Rest, RunId } from '@tallystick/core'
import { deriveRunId } from '@tallystick/core/vocabulary'
import type { Drive, Wake } from '../engine.ts'

/** A wake that was delivered, and whose drive ends as the case says. */
export interface Delivery {
  readonly wake: Wake
  readonly signal: AbortSignal
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  isOver: boolean
  /** Ends the drive: the engine may forget the wake. */
  readonly end: () => void
  /** Ends the drive with an error: the wake is delivered again. */
  readonly fail: () => void
}

/** Takes what an engine delivers, in the place of a runtime, and lets a case decide how each drive ends. */
export class Desk {
  readonly deliveries: Delivery[] = []
  readonly #isAnswering: boolean
  readonly #watchers = new Set<() => void>()
  /** The most drives at one time so far; of a run, and of all. */
  mostAtOnce = 0
  mostOfRun = 0

  /** With `isAnswering`, each drive ends at once. */
  constructor({ isAnswering = false }: { readonly isAnswering?: boolean } = {}) {
    this.#isAnswering = isAnswering
  }

  readonly drive: Drive = (wake, signal) =>
    new Promise<Rest>((resolve, reject) => {
      const finish = (): boolean => {
        const wasOver = delivery.isOver
        delivery.isOver = true
        this.#notify()
        return !wasOver
      }
      const delivery: Delivery = {
        wake,
        signal,
        at: Date.now(),
        isOver: false,
        end: () => {
          if (finish()) resolve({ status: 'waiting', runId: wake.runId, seq: 1, pending: false })
        },
        fail: () => {
          if (finish()) reject(new Error('This drive failed, as the contract wants it to.'))
        },
      }
      this.deliveries.push(delivery)
      this.mostAtOnce = Math.max(this.mostAtOnce, this.open().length)
      this.mostOfRun = Math.max(this.mostOfRun, this.open(wake.runId).length)
      if (this.#isAnswering) delivery.end()
      this.#notify()
    })

  of(runId: RunId): readonly Delivery[] {
    return this.deliveries.filter(({ wake }) => wake.runId === runId)
  }

  /** The drives that have not ended. */
  open(runId?: RunId): readonly Delivery[] {
    return this.deliveries.filter(({ wake, isOver }) => !isOver && (runId ?? wake.runId) === wake.runId)
  }

  /** Resolves with the delivery of that number of a run, from 1. */
  async delivered(runId: RunId, count = 1): Promise<Delivery> {
    await this.until(() => this.of(runId).length >= count)
    return this.of(runId)[count - 1] as Delivery
  }

  /** Resolves once that holds. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        const watcher = (): void => {
          this.#watchers.delete(watcher)
          resolve()
        }
        this.#watchers.add(watcher)
      })
    }
  }

  #notify(): void {
    for (const watcher of [...this.#watchers]) watcher()
  }
}

/** A run of a name that nothing has used before. */
export function freshRun(name: string): RunId {
  return deriveRunId(`${name} ${crypto.randomUUID()}`)
}
