import type { Observable } from 'rxjs'
import type { RunState } from '../machine/state.ts'
import type { RuntimeEvent } from '../vocabulary/event.ts'
import type { RunId } from '../vocabulary/ids.ts'
import type { JsonObject } from '../vocabulary/json.ts'
import type { UserPart } from '../vocabulary/content.ts'
import type { LimitName } from '../vocabulary/limits.ts'
import { messageOf } from './input-message.ts'
import type { CommandReceipt } from './receipts.ts'
import type { RunHub } from './run-hub.ts'
import type { RunResult } from './run-result.ts'
import { eventsOf, iterateEvents, statesOf, textsOf, type EventSource } from './streams.ts'

/**
 * A run, in the hands of whoever started or resumed it. Streams are views of the ledger: every subscriber gets all
 * of it, from the first event, however late it comes. Commands go through the ledger's inbox and answer what became of
 * them; they never throw for a command that the run does not allow. Once the run's writer has failed (another process
 * took the run over, the ledger cannot be written) they reject with that failure: `resume` makes a new handle.
 */
export interface Run<Output = unknown> extends AsyncIterable<RuntimeEvent> {
  readonly id: RunId
  /** Every event, once it is in the ledger. Completes behind `run_finished`; stays open while the run is suspended. */
  readonly events$: Observable<RuntimeEvent>
  /** The state after each event. */
  readonly state$: Observable<RunState>
  /** The model's text as it streams. */
  readonly text$: Observable<string>
  /**
   * How the run stands when it rests: done, or suspended. After a command that lets a suspended run go on, the result
   * of the next rest. Rejects only where the ledger or the caller's own code is at fault.
   */
  readonly result: Promise<RunResult<Output>>
  /** Lets a call run that waits for an approval, with other input if given: a call of this run, or of a child run. */
  approve(
    toolCallId: string,
    decision: { readonly by: string; readonly input?: JsonObject },
  ): Promise<CommandReceipt>
  /** Refuses a call that waits for an approval. The reason reaches the model. */
  deny(
    toolCallId: string,
    decision: { readonly by: string; readonly reason: string },
  ): Promise<CommandReceipt>
  /** Tells the model something at its next turn. The receipt event `input_settled` says where, or why not. */
  steer(input: string | readonly UserPart[]): Promise<CommandReceipt>
  /** Asks something more, behind the answer. The receipt event `input_settled` says where, or why not. */
  queue(input: string | readonly UserPart[]): Promise<CommandReceipt>
  /** Raises a limit; a run that is suspended at it goes on. */
  raiseLimit(limit: LimitName, max: number, by: string): Promise<CommandReceipt>
  /** Stops the run, keeping all that is finished. */
  cancel(reason?: string): Promise<CommandReceipt>
  /** The events one by one, from the first, until the run rests. */
  [Symbol.asyncIterator](): AsyncGenerator<RuntimeEvent, void, undefined>
}

/** A handle of the run that a hub holds. */
export function runOf<Output>(hub: RunHub, source: EventSource): Run<Output> {
  const events$ = eventsOf(source)
  return {
    id: hub.runId,
    events$,
    state$: statesOf(events$),
    text$: textsOf(events$),
    get result() {
      // What a run of this agent answers, its schema has made.
      return hub.result as Promise<RunResult<Output>>
    },
    approve: (toolCallId, { by, input }) =>
      hub.send({ type: 'approve', toolCallId, by, ...(input !== undefined && { input }) }),
    deny: (toolCallId, { by, reason }) => hub.send({ type: 'deny', toolCallId, by, reason }),
    steer: (input) => hub.send({ type: 'steer', message: messageOf(input), receipt: hub.newReceipt() }),
    queue: (input) => hub.send({ type: 'queue', message: messageOf(input), receipt: hub.newReceipt() }),
    raiseLimit: (limit, max, by) => hub.send({ type: 'raise_limit', limit, max, by }),
    cancel: (reason) => hub.send({ type: 'cancel', ...(reason !== undefined && { reason }) }),
    [Symbol.asyncIterator]: () => iterateEvents(events$, hub.result),
  }
}
