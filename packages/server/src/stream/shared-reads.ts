import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { toShownEvent } from '@tallystick/core/internal'
import { Observable, Subject, type Subscription } from 'rxjs'
import type { StreamHost } from './follow.ts'

export type RunSource = Pick<Ledger, 'read' | 'changes'>

export interface FollowedLedger {
  readonly ledger: Ledger
  readonly reads: SharedReads
  readonly stream: StreamHost
}

/** One look at a run: its events from a place on, and whether more may follow them. */
interface Look {
  readonly events: readonly RuntimeEvent[]
  readonly isCut: boolean
}

/** The readers of one run, and the last look of any of them. */
interface Room {
  readonly hints: Subject<void>
  upstream?: Subscription
  readers: number
  last?: { readonly fromSeq: number; readonly look: Promise<Look> }
}

/** The most text that one look takes from the ledger beyond its first event, in characters. */
const maxLook = 65_536

/**
 * Reads runs for many readers. A hint wakes all readers of a run at once, most of them at the same place: the first looks at
 * the ledger, and the others get what it found. One look is kept for each run that is followed.
 */
export class SharedReads {
  readonly #ledger: RunSource
  readonly #rooms = new Map<RunId, Room>()
  readonly #texts = new WeakMap<RuntimeEvent, string>()

  constructor(ledger: RunSource) {
    this.#ledger = ledger
  }

  /** Returns the JSON of an event as readers see it, made once for all. */
  format(event: RuntimeEvent): string {
    const known = this.#texts.get(event)
    if (known !== undefined) return known
    const text = JSON.stringify(toShownEvent(event))
    this.#texts.set(event, text)
    return text
  }

  /**
   * The source of one reader. Its first look is its own: if another process writes and its hint is late, a look of others may
   * be older than what the reader knows.
   */
  forReader(): RunSource {
    let isFirst = true
    return {
      changes: (runId, part) =>
        runId === undefined || part !== undefined ? this.#ledger.changes(runId, part) : this.#changes(runId),
      read: (runId, range = {}) => {
        const room = isFirst || range.toSeq !== undefined ? undefined : this.#rooms.get(runId)
        isFirst = false
        return room ? this.#read(runId, room, range.fromSeq ?? 1) : this.#ledger.read(runId, range)
      },
    }
  }

  #changes(runId: RunId): Observable<void> {
    return new Observable((subscriber) => {
      const room = this.#enter(runId)
      const subscription = room.hints.subscribe(subscriber)
      // Only after the reader: a closed ledger ends its hints at once.
      room.upstream ??= this.#ledger.changes(runId).subscribe({
        next: () => {
          // Before any reader reads again: the last read may miss what the hint is about.
          delete room.last
          room.hints.next()
        },
        error: (error: unknown) => {
          this.#leave(runId, room)
          room.hints.error(error)
        },
        complete: () => {
          this.#leave(runId, room)
          room.hints.complete()
        },
      })
      return () => {
        subscription.unsubscribe()
        room.readers--
        if (room.readers === 0) this.#leave(runId, room)
      }
    })
  }

  #enter(runId: RunId): Room {
    const room = this.#rooms.get(runId) ?? { hints: new Subject<void>(), readers: 0 }
    this.#rooms.set(runId, room)
    room.readers++
    return room
  }

  #leave(runId: RunId, room: Room): void {
    if (this.#rooms.get(runId) === room) this.#rooms.delete(runId)
    room.upstream?.unsubscribe()
  }

  async *#read(runId: RunId, room: Room, fromSeq: number): AsyncGenerator<RuntimeEvent> {
    for (let next = fromSeq; ;) {
      const { events, isCut } = await this.#look(runId, room, next)
      yield* events
      if (!isCut) return
      next += events.length
    }
  }

  #look(runId: RunId, room: Room, fromSeq: number): Promise<Look> {
    if (room.last?.fromSeq === fromSeq) return room.last.look
    const look = this.#lookAt(runId, fromSeq)
    room.last = { fromSeq, look }
    look.catch(() => {
      if (room.last?.look === look) delete room.last
    })
    return look
  }

  async #lookAt(runId: RunId, fromSeq: number): Promise<Look> {
    const events: RuntimeEvent[] = []
    let length = 0
    for await (const event of this.#ledger.read(runId, { fromSeq })) {
      events.push(event)
      length += this.format(event).length
      if (length >= maxLook) return { events, isCut: true }
    }
    return { events, isCut: false }
  }
}
