import { filter, map, scan, type Observable, type Subject } from 'rxjs'
import { evolve } from '../machine/evolve.ts'
import type { RunState } from '../machine/state.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { RuntimeEvent } from '../vocabulary/event.ts'
import type { RunId } from '../vocabulary/ids.ts'
import { IsolatedObservable } from './isolated.ts'

/** Where a run's events come from: those that are in the ledger, and those that are appended from now on. */
export interface EventSource {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly live: Subject<RuntimeEvent>
  readonly report: (error: unknown) => void
  /** Keeps the run's hub in memory until the answer is called: whoever is subscribed has to hear what it publishes. */
  readonly hold: () => () => void
}

/**
 * All events of a run, from the first, then live: no gap, no repeat, for every subscriber, however late. Completes
 * behind `run_finished`; stays open while the run is suspended.
 */
export function eventsOf({ runId, ledger, live, report, hold }: EventSource): Observable<RuntimeEvent> {
  return new IsolatedObservable<RuntimeEvent>(report, (subscriber) => {
    let seq = 0
    let caughtUp = false
    let failure: { readonly error: unknown } | undefined
    const waiting: RuntimeEvent[] = []
    subscriber.add(hold())
    const emit = (event: RuntimeEvent): void => {
      if (event.seq <= seq) return
      seq = event.seq
      subscriber.next(event)
      if (event.type === 'run_finished') subscriber.complete()
    }
    const subscription = live.subscribe({
      next: (event) => (caughtUp ? emit(event) : waiting.push(event)),
      error: (error: unknown) => {
        failure = { error }
        if (caughtUp) subscriber.error(error)
      },
    })
    const catchUp = async (): Promise<void> => {
      for await (const event of ledger.read(runId)) {
        if (subscriber.closed) return
        emit(event)
      }
      waiting.splice(0).forEach(emit)
      caughtUp = true
      if (failure) subscriber.error(failure.error)
    }
    catchUp().catch((error: unknown) => subscriber.error(error))
    return subscription
  })
}

/** The state after each event. */
export function statesOf(events$: Observable<RuntimeEvent>): Observable<RunState> {
  return events$.pipe(
    scan((state: RunState | undefined, event) => evolve(state, event), undefined),
    filter((state) => state !== undefined),
  )
}

/** The model's text, piece by piece, as it streams; text of an attempt that fails later is not taken back. */
export function textsOf(events$: Observable<RuntimeEvent>): Observable<string> {
  return events$.pipe(
    filter((event) => event.type === 'assistant_text_delta'),
    map((event) => event.text),
  )
}

/** A run's events one by one, until the run rests: done, or suspended. */
export async function* iterateEvents(
  events$: Observable<RuntimeEvent>,
  rest: Promise<{ readonly seq: number }>,
): AsyncGenerator<RuntimeEvent, void, undefined> {
  let arrived: RuntimeEvent[] = []
  let wake: () => void = () => {}
  let restSeq = Infinity
  let failure: { readonly error: unknown } | undefined
  const fail = (error: unknown): void => {
    failure ??= { error }
    wake()
  }
  const subscription = events$.subscribe({
    next: (event) => {
      arrived.push(event)
      wake()
    },
    error: fail,
  })
  rest.then(({ seq }) => {
    restSeq = seq
    wake()
  }, fail)
  try {
    for (let seq = 0; seq < restSeq;) {
      // Taken as a whole: shifting events off one by one would cost more the more of them there are.
      const batch = arrived
      arrived = []
      for (const event of batch) {
        seq = event.seq
        yield event
        if (seq >= restSeq) return
      }
      if (arrived.length > 0 || seq >= restSeq) continue
      if (failure) throw failure.error
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } finally {
    subscription.unsubscribe()
  }
}
