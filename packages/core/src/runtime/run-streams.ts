import {
  filter,
  map,
  type MonoTypeOperatorFunction,
  Observable,
  scan,
  type Subject,
  type Subscriber,
  type TeardownLogic,
  type Unsubscribable,
} from 'rxjs'
import type { RuntimeEvent } from '../events/event.ts'
import { Wakeup } from '../ledger/changes.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { evolve } from '../machine/evolve.ts'
import type { RunState } from '../machine/state.ts'
import { shownEvent } from '../models/output.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { type ErrorListener, IsolatedObservable } from '../values/observables.ts'
import { finalTextsOf, type FoldedEvent, type TextUpdate, textUpdatesOf } from './text-updates.ts'

/** Gets the events of a run. None of the functions may throw: the writer of the run calls them. */
interface EventReader {
  next(event: RuntimeEvent): void
  error(error: unknown): void
  /** The ledger can be read no more, and the run has not ended. */
  cutOff?(error: unknown): void
}

/**
 * The events of a run from now on, for all that follow it in this process. As a `Subject`, but for what that makes for each event: a
 * reply has thousands of pieces.
 */
export class LiveEvents extends Observable<RuntimeEvent> {
  #readers: readonly EventReader[] = []
  #failure: { readonly error: unknown } | undefined
  #isBeforeFirst = false
  #hasBegun = false

  constructor() {
    super(subscribeLive)
  }

  /** Call it when this process has made the id of the run: nothing is on record of it yet. */
  beginsHere(): void {
    this.#isBeforeFirst = true
  }

  /** A reader that follows the run from now on misses nothing, so it need not read the ledger. */
  get isBeforeFirst(): boolean {
    return this.#isBeforeFirst
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Passes on what comes, without a subscriber in between, until the reader leaves. */
  follow(reader: EventReader): void {
    if (this.#failure) return reader.error(this.#failure.error)
    // An event that is under way reaches those that were there when it came.
    this.#readers = [...this.#readers, reader]
  }

  leave(reader: EventReader): void {
    this.#readers = this.#readers.filter((other) => other !== reader)
  }

  /** Resolves to the event that comes next. Rejects where an error comes before it. */
  nextEvent(): Promise<RuntimeEvent> {
    return new Promise((resolve, reject) => {
      const reader: EventReader = {
        next: (event) => {
          this.leave(reader)
          resolve(event)
        },
        error: reject,
      }
      this.follow(reader)
    })
  }

  next(event: RuntimeEvent): void {
    if (this.#failure) return
    this.#isBeforeFirst = false
    this.#hasBegun = true
    for (const reader of this.#readers) reader.next(event)
  }

  /** The ledger can be read no more: those that follow it, too, get the error. What this process records still comes to others. */
  cutOff(error: unknown): void {
    for (const reader of this.#readers) reader.cutOff?.(error)
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

/**
 * A piece of a reply's text as the model writes it, before it is on record, so without a `seq`. Show it until the record has come:
 * an `assistant_text_delta` or the `assistant_message_finished` of its turn, or the failure of its attempt.
 */
export interface LiveText {
  readonly turn: number
  readonly attempt: number
  /** The place of its part in the reply. */
  readonly part: number
  readonly text: string
  /** It takes the place of all text of its part so far. */
  readonly replaces?: true
}

/**
 * The pieces of text that this process gets from the model of a run, from now on: ends with the events of the run. Errors with a
 * `ConfigurationError` if the runtime has no `liveText`.
 */
export function streamLiveText(source: EventSource, events$: Observable<RuntimeEvent>): Observable<LiveText> {
  return new IsolatedObservable(source, (subscriber) => {
    if (source.liveText === undefined) {
      throw new ConfigurationError(
        `liveText$ of run ${source.runId} has nothing to show: its runtime does not pass text on before it is on record. Create the runtime with liveText: true, or read textUpdates$.`,
      )
    }
    const pieces = source.liveText.subscribe(subscriber)
    pieces.add(
      events$.subscribe({
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    )
    return pieces
  })
}

/** Live events as an Observable. One function for all of them: a process may hold thousands of runs. */
function subscribeLive(this: Observable<RuntimeEvent>, subscriber: Subscriber<RuntimeEvent>): TeardownLogic {
  const live = this as LiveEvents
  live.follow(subscriber)
  return () => live.leave(subscriber)
}

/**
 * Where a run's events come from: those that are in the ledger, and those that are appended from now on. Gets the errors that
 * are not of the run itself.
 */
export interface EventSource extends ErrorListener {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly live: LiveEvents
  /** Text before it is on record; absent unless the runtime is to pass it on. */
  readonly liveText: Subject<LiveText> | undefined
  /** Keeps the driver of the run in memory for one reader more, since it publishes the events. */
  retain(): void
  /** One reader less, of those for which it is kept. */
  release(): void
}

/** Sees each event before its reader does. */
interface EventWitness {
  event(event: RuntimeEvent): void
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
function streamEvents(
  source: EventSource,
  range: EventRange,
  witness?: EventWitness,
): Observable<RuntimeEvent> {
  return new RunEvents(source, range, witness)
}

/** Those of one range. All of them share the function that reads them: a process may hold thousands. */
class RunEvents extends IsolatedObservable<RuntimeEvent> {
  readonly run: EventSource
  readonly range: EventRange
  readonly witness: EventWitness | undefined

  constructor(run: EventSource, range: EventRange, witness: EventWitness | undefined) {
    super(run, readRun)
    this.run = run
    this.range = range
    this.witness = witness
  }
}

function readRun(this: Observable<RuntimeEvent>, subscriber: Subscriber<RuntimeEvent>): Unsubscribable {
  return new RunReader(this as RunEvents, subscriber)
}

/** The place of one subscriber in a run's events. */
class RunReader implements EventReader, Unsubscribable {
  readonly #events: RunEvents
  readonly #subscriber: Subscriber<RuntimeEvent>
  #seq: number
  #isCaughtUp: boolean
  /** Events that arrived before the reader had read the ledger. */
  #waiting: RuntimeEvent[] | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(events: RunEvents, subscriber: Subscriber<RuntimeEvent>) {
    const { run, range } = events
    const { after, from = after } = range
    this.#events = events
    this.#subscriber = subscriber
    this.#seq = from
    this.#isCaughtUp = after === 0 && from === 0 && run.live.isBeforeFirst
    run.retain()
    run.live.follow(this)
    if (!this.#isCaughtUp) this.#catchUp(after, from).catch((error: unknown) => subscriber.error(error))
  }

  next(event: RuntimeEvent): void {
    if (this.#subscriber.closed) return
    // Whoever publishes may have begun behind what this reader has seen: what lies between is read.
    const hasGap = this.#isCaughtUp && event.seq > this.#seq + 1
    if (hasGap) {
      this.#isCaughtUp = false
      this.#catchUp(this.#seq, this.#seq).catch((error: unknown) => this.#subscriber.error(error))
    }
    if (this.#isCaughtUp) this.#emit(event)
    else (this.#waiting ??= []).push(event)
  }

  error(error: unknown): void {
    this.#failure = { error }
    if (this.#isCaughtUp) this.#subscriber.error(error)
  }

  cutOff(error: unknown): void {
    this.#subscriber.error(error)
  }

  unsubscribe(): void {
    const { run } = this.#events
    run.live.leave(this)
    run.release()
  }

  #emit(event: RuntimeEvent): void {
    const { range, witness } = this.#events
    if (event.seq > this.#seq) {
      this.#seq = event.seq
      witness?.event(event)
      this.#subscriber.next(range.show ? range.show(event) : event)
    }
    if (event.type === 'run_finished') this.#subscriber.complete()
  }

  async #catchUp(after: number, from: number): Promise<void> {
    const { runId, ledger } = this.#events.run
    const lastSeq = (await ledger.head(runId))?.seq ?? 0
    if (after > lastSeq) throw noSuchEvent(runId, after, lastSeq)
    // Reads the last seen event again: no event follows the end of a run.
    for await (const event of ledger.read(runId, { fromSeq: Math.max(1, from) })) {
      if (this.#subscriber.closed) return
      this.#emit(event)
    }
    for (const event of this.#waiting ?? []) this.#emit(event)
    this.#waiting = undefined
    this.#isCaughtUp = true
    if (this.#failure) this.#subscriber.error(this.#failure.error)
  }
}

function noSuchEvent(runId: RunId, seq: number, lastSeq: number): ConfigurationError {
  return new ConfigurationError(
    `Run ${runId} has no event ${seq} to continue after: its last is ${lastSeq}. The number may be of another run, or of another ledger; read the run from 0.`,
  )
}

/** Each event with the state after it. */
function foldEvents(events$: Observable<RuntimeEvent>): Observable<FoldedEvent> {
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

/** Where an object keeps what its late fields are read with. */
const readers = Symbol('readers')

type Readers<Fields> = { readonly [Name in keyof Fields]: () => Fields[Name] }

/**
 * Returns a function that gives an object fields of these names, each of which is read when it is asked for.
 *
 * All these objects share the functions of the fields. With a function of its own each object would get a hidden class of its
 * own, which V8 keeps in its old generation: all that the function holds, such as a run that has ended, would stay in memory
 * until the next full collection.
 */
export function lateFields<Fields extends object>(
  names: readonly (keyof Fields & string)[],
): <Given extends object>(given: Given, fields: Readers<Fields>) => Given & Fields {
  const described = names.map((name) => {
    const get = function (this: { readonly [readers]: Readers<Fields> }): unknown {
      return this[readers][name]()
    }
    return [name, { get, enumerable: true, configurable: true }] as const
  })
  return (given, fields) => {
    Object.defineProperty(given, readers, { value: fields })
    for (const [name, field] of described) Object.defineProperty(given, name, field)
    return given as typeof given & Fields
  }
}

/**
 * Several views of a run's ledger. Every subscriber gets all of a view, however late it comes;
 * each completes after `run_finished`, and stays open while the run is suspended. Where the ledger is closed before, each
 * errors with the `LedgerUnavailableError` of any read then: it was cut off, and the run has not ended.
 */
export interface RunStreams extends AsyncIterable<RuntimeEvent> {
  /**
   * Every event, once it is in the ledger. Where `outputStream` of an agent shows another text than the model wrote, the
   * ledger alone holds what it wrote.
   */
  readonly events$: Observable<RuntimeEvent>
  /** The state after each event. */
  readonly state$: Observable<RunState>
  /**
   * The model's text, message by message: each when it is whole and every check of it has
   * passed. Nothing of it is ever taken back. `textUpdates$` has it earlier.
   */
  readonly text$: Observable<string>
  /**
   * The model's text piece by piece as it is written, and what is taken back of it: by a call that failed and is made
   * again, by a guardrail, or by an answer that has to be written again. `withdrawn` names the end of what was shown.
   */
  readonly textUpdates$: Observable<TextUpdate>
  /** The events one by one, until the run stops. */
  [Symbol.asyncIterator](): AsyncGenerator<RuntimeEvent, void, undefined>
}

/**
 * The views of a run after one of its events, or of the whole run after 0. Most runs are read in one of them: the others are
 * made when they are first asked for.
 */
export class RunViews {
  readonly events$: Observable<RuntimeEvent>
  readonly #source: EventSource
  readonly #after: number
  #folded$: Observable<FoldedEvent> | undefined
  #state$: Observable<RunState> | undefined
  #text$: Observable<string> | undefined
  #textUpdates$: Observable<TextUpdate> | undefined

  constructor(source: EventSource, after: number, witness: EventWitness) {
    this.events$ = streamEvents(source, { after, show: shownEvent }, witness)
    this.#source = source
    this.#after = after
  }

  state$(): Observable<RunState> {
    return (this.#state$ ??= this.#folded().pipe(
      map(({ state }) => state),
      this.#isAfter(),
    ))
  }

  text$(): Observable<string> {
    return (this.#text$ ??= finalTextsOf(this.#folded()).pipe(
      this.#isAfter(),
      map(({ text }) => text),
    ))
  }

  textUpdates$(): Observable<TextUpdate> {
    return (this.#textUpdates$ ??= textUpdatesOf(this.#folded()).pipe(this.#isAfter()))
  }

  #folded(): Observable<FoldedEvent> {
    return (this.#folded$ ??= foldEvents(streamEvents(this.#source, { after: this.#after, from: 0 })))
  }

  #isAfter<T extends { readonly seq: number }>(): MonoTypeOperatorFunction<T> {
    return filter(({ seq }: T) => seq > this.#after)
  }
}

/** The views of a run after one of its events, as its reader gets them. */
export function streamsOf(
  views: RunViews,
  iterate: () => ReturnType<RunStreams[typeof Symbol.asyncIterator]>,
): RunStreams {
  return withViews({ events$: views.events$, [Symbol.asyncIterator]: iterate }, views)
}

const withViews = lateFields<Pick<RunStreams, 'state$' | 'text$' | 'textUpdates$'>>([
  'state$',
  'text$',
  'textUpdates$',
])
