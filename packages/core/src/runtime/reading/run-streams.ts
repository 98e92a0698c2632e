import { filter, map, type Observable } from 'rxjs'
import type { RunState } from '../../machine/state/state.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { eventsOf, foldedOf, iterateEvents, type EventSource } from './event-source.ts'
import { lateFields } from './late-fields.ts'
import { lazily } from '../../vocabulary/values/schema.ts'
import { shownEvent } from '../output/shown-event.ts'
import { finalTextsOf, textUpdatesOf, type TextUpdate } from './text-updates.ts'

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

/** The views of a run after one of its events; of the whole run after 0. `onEvent` gets each event before its reader. */
export function streamsOf(
  source: EventSource,
  stopped: () => Promise<{ readonly seq: number }>,
  after: number,
  onEvent: (event: RuntimeEvent) => void,
): RunStreams {
  const events$ = eventsOf(source, { after, show: shownEvent }, onEvent)
  // Most runs are read in one of these views: the others are made when they are first asked for.
  const folded$ = lazily(() => foldedOf(eventsOf(source, { after, from: 0 })))
  const state$ = lazily(() =>
    folded$().pipe(
      map(({ state }) => state),
      filter(({ seq }) => seq > after),
    ),
  )
  const text$ = lazily(() =>
    finalTextsOf(folded$()).pipe(
      filter(({ seq }) => seq > after),
      map(({ text }) => text),
    ),
  )
  const textUpdates$ = lazily(() => textUpdatesOf(folded$()).pipe(filter(({ seq }) => seq > after)))
  return withViews(
    { events$, [Symbol.asyncIterator]: () => iterateEvents(events$, stopped(), after) },
    { state$, text$, textUpdates$ },
  )
}

const withViews = lateFields<Pick<RunStreams, 'state$' | 'text$' | 'textUpdates$'>>([
  'state$',
  'text$',
  'textUpdates$',
])
