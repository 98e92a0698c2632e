import { filter, Observable, scan } from 'rxjs'
import { ConfigurationError } from '../../vocabulary/errors.ts'
import { evolve } from '../../machine/fold/evolve.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { IsolatedObservable, type ErrorListener } from './isolated.ts'
import type { FoldedEvent } from './text-updates.ts'
import { Wakeup } from '../../ports/wakeup.ts'

/** Gets the events of a run. Neither function may throw: the writer of the run calls it. */
interface EventReader {
  readonly next: (event: RuntimeEvent) => void
  readonly error: (error: unknown) => void
}

/**
 * The events of a run from now on, for all that follow it in this process. As a `Subject`, but for what that makes for each event: a
 * reply has thousands of pieces.
 */
export class LiveEvents extends Observable<RuntimeEvent> {
  #readers: readonly EventReader[] = []
  #failure: { readonly error: unknown } | undefined
  #isBeforeFirst = false

  constructor() {
    super((subscriber) =>
      this.follow({
        next: (event) => subscriber.next(event),
        error: (error) => subscriber.error(error),
      }),
    )
  }

  /** To be called where this process has made the id of the run: nothing is on record of it before what comes here. */
  beginsHere(): void {
    this.#isBeforeFirst = true
  }

  /** Whether a reader that follows the run from now on misses nothing of it, so that it need not read the ledger. */
  get isBeforeFirst(): boolean {
    return this.#isBeforeFirst
  }

  /** Passes on what comes, without a subscriber in between, until the returned function is called. */
  follow(reader: EventReader): () => void {
    if (this.#failure) {
      reader.error(this.#failure.error)
      return () => {}
    }
    // An event that is under way reaches those that were there when it came.
    this.#readers = [...this.#readers, reader]
    return () => {
      this.#readers = this.#readers.filter((other) => other !== reader)
    }
  }

  /** Resolves to the event that comes next. Rejects where an error comes before it. */
  nextEvent(): Promise<RuntimeEvent> {
    return new Promise((resolve, reject) => {
      const leave = this.follow({
        next: (event) => {
          leave()
          resolve(event)
        },
        error: reject,
      })
    })
  }

  next(event: RuntimeEvent): void {
    if (this.#failure) return
    this.#isBeforeFirst = false
    for (const reader of this.#readers) reader.next(event)
  }

  /** No event follows: all that follow the run get the error, and so do those that come later. */
  error(error: unknown): void {
    if (this.#failure) return
    this.#failure = { error }
    // The append that failed may be on record.
    this.#isBeforeFirst = false
    for (const reader of this.#readers) reader.error(error)
  }
}

/** Where a run's events come from: those that are in the ledger, and those that are appended from now on. */
export interface EventSource {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly live: LiveEvents
  /** Gets the errors that are not of the run itself. */
  readonly errorListener: ErrorListener
  /**
   * Keeps the coordinator of the run in memory until the returned function is called, since it publishes the events.
   * `onCutOff` gets the error where the ledger can be followed no more.
   */
  readonly retain: (onCutOff: (error: unknown) => void) => () => void
}

/** Which events of a run a stream has. */
export interface EventRange {
  /** The event after which a reader continues; 0 for all. It has to be on record. */
  readonly after: number
  /** The event after which the stream begins, where a reader needs more than it gets: the state, say. */
  readonly from?: number
  /** An event as its readers see it. */
  readonly show?: (event: RuntimeEvent) => RuntimeEvent
}

/**
 * The events of a run after one of them, then live: no gap, no repeat, for every subscriber, however late. Completes
 * after `run_finished`; stays open while the run is suspended. Errors where the ledger is closed before.
 */
export function eventsOf(
  { runId, ledger, live, errorListener: listener, retain }: EventSource,
  { after, from = after, show = (event) => event }: EventRange,
  onEvent: (event: RuntimeEvent) => void = () => {},
): Observable<RuntimeEvent> {
  return new IsolatedObservable<RuntimeEvent>(listener, (subscriber) => {
    let seq = from
    let caughtUp = after === 0 && from === 0 && live.isBeforeFirst
    let failure: { readonly error: unknown } | undefined
    const waiting: RuntimeEvent[] = []
    subscriber.add(retain((error) => subscriber.error(error)))
    const emit = (event: RuntimeEvent): void => {
      if (event.seq > seq) {
        seq = event.seq
        onEvent(event)
        subscriber.next(show(event))
      }
      if (event.type === 'run_finished') subscriber.complete()
    }
    const leave = live.follow({
      next: (event) => {
        if (subscriber.closed) return
        if (caughtUp) emit(event)
        else waiting.push(event)
      },
      error: (error: unknown) => {
        failure = { error }
        if (caughtUp) subscriber.error(error)
      },
    })
    const catchUp = async (): Promise<void> => {
      const lastSeq = (await ledger.head(runId))?.seq ?? 0
      if (after > lastSeq) throw noSuchEvent(runId, after, lastSeq)
      // Reads the last seen event again: no event follows the end of a run.
      for await (const event of ledger.read(runId, { fromSeq: Math.max(1, from) })) {
        if (subscriber.closed) return
        emit(event)
      }
      waiting.splice(0).forEach(emit)
      caughtUp = true
      if (failure) subscriber.error(failure.error)
    }
    if (!caughtUp) catchUp().catch((error: unknown) => subscriber.error(error))
    return leave
  })
}

function noSuchEvent(runId: RunId, seq: number, lastSeq: number): ConfigurationError {
  return new ConfigurationError(
    `Run ${runId} has no event ${seq} to continue after: its last is ${lastSeq}. The number may be of another run, or of another ledger; read the run from 0.`,
  )
}

/** Each event with the state after it. */
export function foldedOf(events$: Observable<RuntimeEvent>): Observable<FoldedEvent> {
  return events$.pipe(
    scan(
      (before: FoldedEvent | undefined, event) => ({ event, state: evolve(before?.state, event) }),
      undefined,
    ),
    filter((folded) => folded !== undefined),
  )
}

/** A run's events one by one, after the event `after`, until the run stops. */
export async function* iterateEvents(
  events$: Observable<RuntimeEvent>,
  stopped: Promise<{ readonly seq: number }>,
  after: number,
): AsyncGenerator<RuntimeEvent, void, undefined> {
  let arrived: RuntimeEvent[] = []
  const wakeup = new Wakeup()
  let stoppedSeq = Infinity
  let failure: { readonly error: unknown } | undefined
  const fail = (error: unknown): void => {
    failure ??= { error }
    wakeup.wake()
  }
  const subscription = events$.subscribe({
    next: (event) => {
      arrived.push(event)
      wakeup.wake()
    },
    error: fail,
  })
  stopped.then(({ seq }) => {
    stoppedSeq = seq
    wakeup.wake()
  }, fail)
  try {
    for (let seq = after; seq < stoppedSeq;) {
      // Taken as a whole: shifting events off one by one would cost more the more of them there are.
      const batch = arrived
      arrived = []
      for (const event of batch) {
        seq = event.seq
        yield event
        if (seq >= stoppedSeq) return
      }
      if (arrived.length > 0 || seq >= stoppedSeq) continue
      if (failure) throw failure.error
      await wakeup.wait()
    }
  } finally {
    subscription.unsubscribe()
  }
}
