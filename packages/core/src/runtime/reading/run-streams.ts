import { filter, map, type MonoTypeOperatorFunction, type Observable } from 'rxjs'
import type { RunState } from '../../machine/state.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import { eventsOf, foldedOf, type EventSource, type EventWitness } from './event-source.ts'
import { lateFields } from './late-fields.ts'
import { shownEvent } from '../output/shown-event.ts'
import { finalTextsOf, textUpdatesOf, type FoldedEvent, type TextUpdate } from './text-updates.ts'

/**
 * What a run did and does, in several views of its ledger. Every subscriber gets all of a view, however late it comes;
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
    this.events$ = eventsOf(source, { after, show: shownEvent }, witness)
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
    return (this.#folded$ ??= foldedOf(eventsOf(this.#source, { after: this.#after, from: 0 })))
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
