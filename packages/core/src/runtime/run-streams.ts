import {
  concatMap,
  filter,
  map,
  of,
  type Observable,
  type Observer,
  scan,
  Subject,
  type Subscriber,
  type Subscription,
  type Unsubscribable,
} from 'rxjs'
import type { Agent } from '../agent/agent.ts'
import { isAfterEnd, type RuntimeEvent } from '../events/event.ts'
import { Wakeup } from '../ledger/changes.ts'
import { evolve } from '../machine/evolve.ts'
import { findDueAnswerCheck } from '../machine/required-effects.ts'
import type { RunState } from '../machine/state.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { IsolatedObservable } from '../values/observables.ts'
import { AnswerReader, type PartialOutput, type WrittenAnswer } from './partial-output.ts'
import type { RunDriver } from './run-driver.ts'
import { readOutput } from './run-result.ts'

/** The events of a run from now on, for all that follow it in this process. Those that come after an error get it, too. */
export class LiveEvents extends Subject<RuntimeEvent> {
  /** The ledger can be read no more, and the run has not ended: ends those that read it, too. */
  readonly cutOff$: Subject<unknown> = new Subject()
  #isBeforeFirst = false
  #hasBegun = false

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

  override next(event: RuntimeEvent): void {
    this.#isBeforeFirst = false
    this.#hasBegun = true
    super.next(event)
  }

  override error(error: unknown): void {
    // The append that failed may be on record.
    this.#isBeforeFirst = false
    super.error(error)
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
export function streamLiveText(run: RunDriver, events$: Observable<RuntimeEvent>): Observable<LiveText> {
  return new IsolatedObservable(run, (subscriber) => {
    if (run.liveText === undefined) {
      throw new ConfigurationError(
        `liveText$ of run ${run.runId} has nothing to show: its runtime does not pass text on before it is on record. Create the runtime with liveText: true, or read textUpdates$.`,
      )
    }
    const pieces = run.liveText.subscribe(subscriber)
    pieces.add(
      events$.subscribe({
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    )
    return pieces
  })
}

/** Which events of a run a stream has. */
interface EventRange {
  /** The event after which a reader continues; 0 for all. It has to be on record. */
  readonly after: number
  /** The event after which the stream begins, if a reader needs more than it gets: the state, say. */
  readonly from: number
  /** An event as its readers see it. */
  readonly show: (event: RuntimeEvent) => RuntimeEvent
}

/**
 * The events of a run after one of them, then live: no gap, no repeat, for every subscriber, however late. Completes
 * after the end of the run, with the feedback that it has by then; stays open while the run is suspended. Errors if the ledger is closed before.
 */
function streamEvents(run: RunDriver, range: EventRange): Observable<RuntimeEvent> {
  return new IsolatedObservable(run, (subscriber) => new RunReader(run, range, subscriber))
}

/** The place of one subscriber in a run's events. */
class RunReader implements Pick<Observer<RuntimeEvent>, 'next' | 'error'>, Unsubscribable {
  readonly #run: RunDriver
  readonly #show: EventRange['show']
  readonly #subscriber: Subscriber<RuntimeEvent>
  readonly #subscription: Subscription
  #seq: number
  #isCaughtUp: boolean
  /** The run has ended: only feedback follows. */
  #isOver = false
  /** Events that arrived before the reader had read the ledger. */
  #waiting: RuntimeEvent[] = []
  #failure: { readonly error: unknown } | undefined

  constructor(run: RunDriver, { after, from, show }: EventRange, subscriber: Subscriber<RuntimeEvent>) {
    this.#run = run
    this.#show = show
    this.#subscriber = subscriber
    this.#seq = from
    this.#isCaughtUp = after === 0 && from === 0 && run.live.isBeforeFirst
    run.retain()
    this.#subscription = run.live.subscribe(this)
    this.#subscription.add(run.live.cutOff$.subscribe((error) => subscriber.error(error)))
    if (!this.#isCaughtUp) void this.#catchUp(after, from)
  }

  next(event: RuntimeEvent): void {
    if (this.#subscriber.closed) return
    // Whoever publishes may have begun behind what this reader has seen: what lies between is read.
    const hasGap = this.#isCaughtUp && event.seq > this.#seq + 1
    if (hasGap) {
      this.#isCaughtUp = false
      void this.#catchUp(this.#seq, this.#seq)
    }
    if (this.#isCaughtUp) this.#emit(event)
    else this.#waiting.push(event)
  }

  error(error: unknown): void {
    this.#failure = { error }
    if (this.#isCaughtUp) this.#subscriber.error(error)
  }

  unsubscribe(): void {
    this.#subscription.unsubscribe()
    this.#run.release()
  }

  #emit(event: RuntimeEvent): void {
    if (event.seq > this.#seq) {
      this.#seq = event.seq
      this.#subscriber.next(this.#show(event))
    }
    this.#isOver = isAfterEnd(event)
    if (this.#isOver && this.#isCaughtUp) this.#subscriber.complete()
  }

  async #catchUp(after: number, from: number): Promise<void> {
    const { runId, ledger } = this.#run
    try {
      const lastSeq = (await ledger.head(runId))?.seq ?? 0
      if (after > lastSeq) throw createNoSuchEventError(runId, after, lastSeq)
      // Reads the last seen event again: after the end of a run there may be nothing else.
      for await (const event of ledger.read(runId, { fromSeq: Math.max(1, from) })) {
        if (this.#subscriber.closed) return
        this.#emit(event)
      }
      for (const event of this.#waiting) this.#emit(event)
      this.#waiting = []
      this.#isCaughtUp = true
      if (this.#isOver) this.#subscriber.complete()
      if (this.#failure) this.#subscriber.error(this.#failure.error)
    } catch (error) {
      this.#subscriber.error(error)
    }
  }
}

function createNoSuchEventError(runId: RunId, seq: number, lastSeq: number): ConfigurationError {
  return new ConfigurationError(
    `Run ${runId} has no event ${seq} to continue after: its last is ${lastSeq}. The number may be of another run, or of another ledger; read the run from 0.`,
  )
}

/** A run's events one by one, after the event `after`, until the run stops. */
async function* iterateEvents(
  events$: Observable<RuntimeEvent>,
  stopped: Promise<{ readonly seq: number }>,
  after: number,
): AsyncGenerator<RuntimeEvent, void, undefined> {
  let arrived: RuntimeEvent[] = []
  const wakeup = new Wakeup()
  let stoppedSeq = Infinity
  let isComplete = false
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
    complete: () => {
      isComplete = true
      wakeup.wake()
    },
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
      if (isComplete) return
      await wakeup.wait()
    }
  } finally {
    subscription.unsubscribe()
  }
}

/** The model's text piece by piece, after the event `after`, until the run stops. */
async function* iterateText(
  events: AsyncIterable<RuntimeEvent>,
  after: number,
): AsyncGenerator<string, void, undefined> {
  let state: RunState | undefined
  let shown = noText
  for await (const event of events) {
    state = evolve(state, event)
    shown = advanceShownText(shown, { event, state })
    if (event.seq > after) for (const { type, text } of shown.updates) if (type === 'text') yield text
  }
}

/**
 * Several views of a run's ledger. Every subscriber gets all of a view, however late it comes; each completes after the
 * end of the run, with the feedback that it has by then, and stays open while the run is suspended. Where the ledger is
 * closed before, each errors with the `LedgerUnavailableError` of any read then: it was cut off, and the run has not
 * ended.
 */
export interface RunStreams<Output = unknown> extends AsyncIterable<RuntimeEvent> {
  /**
   * Every event, once it is in the ledger. Where `outputStream` of an agent shows another text than the model wrote, the
   * ledger alone holds what it wrote.
   */
  readonly events$: Observable<RuntimeEvent>
  /** The state after each event. */
  readonly state$: Observable<RunState>
  /**
   * The model's text, message by message: each when it is whole and every check of it has passed. Nothing of it is ever
   * taken back. `textUpdates$` has it earlier.
   */
  readonly text$: Observable<string>
  /**
   * The model's text piece by piece as it is written, and what is taken back of it: by a call that failed and is made
   * again, by a guardrail, or by an answer that has to be written again. `withdrawn` names the end of what was shown.
   */
  readonly textUpdates$: Observable<TextUpdate>
  /**
   * The output while the model writes it, from what is on record: each value is a beginning of the answer, by the
   * agent's schema, and the last is the `output` of the result. `undefined` says that what came before is no part of
   * the answer: an attempt failed, a guardrail took it back, the answer did not fit, or it was no answer but came
   * before a tool call. It then begins anew. Of an agent without an output schema it is the text so far.
   */
  readonly partialOutput$: Observable<PartialOutput<Output> | undefined>
  /**
   * The model's text piece by piece as it is written, until the run stops: `for await (const text of run.text())`. What
   * is taken back of it (see `textUpdates$`) stays with its reader, and the text in its place follows.
   */
  text(): AsyncGenerator<string, void, undefined>
  /** The events one by one, until the run stops. */
  [Symbol.asyncIterator](): AsyncGenerator<RuntimeEvent, void, undefined>
}

const wholeRun: EventRange = { after: 0, from: 0, show: (event) => event }

/** The views of a run after one of its events, or of the whole run after 0; `show` makes each event what its readers see. */
export function createStreams<Output>(
  run: RunDriver,
  after: number,
  show: (event: RuntimeEvent) => RuntimeEvent,
): RunStreams<Output> {
  const events$ = streamEvents(run, { after, from: after, show })
  // Put together for each subscriber: most runs are read in one view, and thousands may be under way.
  const derive = <T>(toView: (folded$: Observable<FoldedEvent>) => Observable<T>): Observable<T> =>
    new IsolatedObservable<T>(run, (subscriber) => {
      const folded$ = streamEvents(run, { after, from: 0, show: (event) => event }).pipe(
        scan<RuntimeEvent, FoldedEvent, undefined>(
          (before, event) => ({ event, state: evolve(before?.state, event) }),
          undefined,
        ),
      )
      return toView(folded$).subscribe(subscriber)
    })
  return {
    events$,
    state$: derive((folded$) =>
      folded$.pipe(
        map(({ state }) => state),
        filter(({ seq }) => seq > after),
      ),
    ),
    text$: derive((folded$) =>
      streamFinalTexts(folded$).pipe(
        filter(({ seq }) => seq > after),
        map(({ text }) => text),
      ),
    ),
    textUpdates$: derive((folded$) => streamTextUpdates(folded$).pipe(filter(({ seq }) => seq > after))),
    partialOutput$: derive((folded$) =>
      streamWrittenAnswers(folded$).pipe(
        filter(({ state }) => state.seq > after),
        concatMap(({ state, value, isWhole }) =>
          isWhole && value !== undefined
            ? readOutput(state, value, run.parts.agents.find(state.agent) as Agent<PartialOutput<Output>>)
            : of(value as PartialOutput<Output>),
        ),
      ),
    ),
    text: () => iterateText(iterateEvents(streamEvents(run, wholeRun), run.result, 0), after),
    [Symbol.asyncIterator]: () => iterateEvents(events$, run.result, after),
  }
}

/** A change of the shown text while the model writes. */
export interface TextUpdate {
  /** `text` is added to the shown text; `withdrawn` is taken back from its end. */
  readonly type: 'text' | 'withdrawn'
  readonly text: string
  readonly turn: number
  /** The event that caused it. */
  readonly seq: number
}

/** A text that is final, and the event that made it final. */
export interface FinalText {
  readonly text: string
  readonly seq: number
}

export interface FoldedEvent {
  readonly event: RuntimeEvent
  readonly state: RunState
}

/** The text of a turn's reply that a reader is shown, and how it changed last. */
export interface ShownText {
  readonly text: string
  /** The reply is a message: its shown text is final. */
  readonly isMessage: boolean
  readonly updates: readonly TextUpdate[]
}

/** Before the first reply. */
export const noText: ShownText = { text: '', isMessage: false, updates: [] }

/** The model's text as it is written, and text that is taken back. */
function streamTextUpdates(folded$: Observable<FoldedEvent>): Observable<TextUpdate> {
  return folded$.pipe(
    scan(advanceShownText, noText),
    concatMap(({ updates }) => updates),
  )
}

/** What is known of the answer while it is written, with the state at that moment. */
function streamWrittenAnswers(
  folded$: Observable<FoldedEvent>,
): Observable<WrittenAnswer & { readonly state: RunState }> {
  const reader = new AnswerReader()
  let shown = noText
  return folded$.pipe(
    concatMap((folded) => {
      shown = advanceShownText(shown, folded)
      const written = reader.next(folded, shown)
      return written ? [{ ...written, state: folded.state }] : []
    }),
  )
}

/** Returns what a reader is shown after an event. */
export function advanceShownText(before: ShownText, { event, state }: FoldedEvent): ShownText {
  const { turn, seq } = event
  const change = (type: TextUpdate['type'], text: string): readonly TextUpdate[] =>
    text === '' ? [] : [{ type, text, turn, seq }]
  const show = (text: string, isMessage: boolean): ShownText => {
    const goesOn = text.startsWith(before.text)
    const updates = goesOn
      ? change('text', text.slice(before.text.length))
      : [...change('withdrawn', before.text), ...change('text', text)]
    return { text, isMessage, updates }
  }
  const { type } = event
  if (type === 'assistant_text_delta') {
    // The provider took a part of it back in the end.
    if (event.replaces) return show(readStreamedText(state), false)
    return { ...before, text: before.text + event.text, updates: change('text', event.text) }
  }
  if (type === 'model_call_started') {
    // The next attempt replaces the text; the next turn adds to it.
    return event.attempt > 1 ? show('', false) : { text: '', isMessage: false, updates: [] }
  }
  if (type === 'output_checked' && event.repair) return show('', true)
  const isChecked = type === 'guardrail_tripped' && event.on === 'output'
  if (type === 'assistant_message_finished' || type === 'output_checked' || isChecked)
    return show(readReplyText(state), true)
  // A run may end without a message of the attempt that broke off.
  return type === 'run_finished' && !before.isMessage ? show('', false) : { ...before, updates: [] }
}

/** The text that came of the reply under way, part by part. */
function readStreamedText(state: RunState): string {
  const drafts = state.phase === 'streaming' ? state.attempt.drafts : []
  const texts = drafts.filter(({ kind }) => kind === 'text').toSorted((a, b) => a.part - b.part)
  return texts.map(({ text }) => text).join('')
}

/** The shown text of a reply: that of its message, or what its schema made of it. */
function readReplyText(state: RunState): string {
  return state.phase === 'collecting' && state.reply.message.parts.length > 0 ? state.lastText : ''
}

/** The text of each message once it is final: it is whole, and every check of it has passed. */
function streamFinalTexts(folded$: Observable<FoldedEvent>): Observable<FinalText> {
  return folded$.pipe(
    scan(({ turn }: ReturnType<typeof readReply>, folded) => readReply(turn, folded), { turn: 0 }),
    concatMap(({ finalText }) => (finalText ? [finalText] : [])),
  )
}

/** The last turn whose reply was read, and its text once that is final. */
function readReply(
  turn: number,
  { event, state }: FoldedEvent,
): { readonly turn: number; readonly finalText?: FinalText } {
  if (state.phase !== 'collecting' || state.turn === turn) return { turn }
  // The run ends with a replacement of its answer: the time was up before a guardrail had checked it.
  const isWithheld =
    event.type === 'guardrail_tripped' && event.on === 'output' && event.cause === 'controller'
  if (findDueAnswerCheck(state) && !isWithheld) return { turn }
  const text = readReplyText(state)
  // An answer that the model is to write again is withdrawn.
  const isWithdrawn = event.type === 'output_checked' && event.repair !== undefined
  return { turn: event.turn, ...(text !== '' && !isWithdrawn && { finalText: { text, seq: event.seq } }) }
}
