import type { Observable } from 'rxjs'
import type { ModelRef } from '../vocabulary/model/content.ts'
import type { JsonObject } from '../vocabulary/values/json.ts'
import type { WebSearchesMax } from '../vocabulary/billing/price.ts'
import type { ModelRequest } from '../vocabulary/model/model-request.ts'
import type { ModelSignal } from '../vocabulary/signals/signal.ts'
import type { Clock } from './clock.ts'

/** What the runtime lends a model call. */
export interface ModelContext {
  /** For watchdogs: adapters use no timer of their own. */
  readonly clock: Clock
}

/**
 * A model behind a wire. Two pure translations around one call; it never retries and never decides.
 *
 * `stream` starts the call when it is subscribed to. It reports signals, ends with `model_finished` and completes;
 * or it errors with a `ProviderError`. Anything else (another error, completion without `model_finished`, a report that
 * JSON cannot carry, a finished reply that contradicts what was streamed) the runtime takes for a broken adapter and
 * records as a failure of class `protocol`. Unsubscribing closes the connection before it returns control, and nothing
 * is reported after it.
 */
export interface Model extends ModelRef {
  /**
   * What its options decide of a call: the server and the conversation that it goes to, how the model is to work. Stands
   * in the ledger, so that a resume by other options is found: no keys, no headers.
   */
  readonly pinnedOptions?: JsonObject
  /**
   * The most web searches that the provider runs within one call that allows tools, as the adapter's settings bound them.
   * Absent where the provider runs none, or bills none. With a price for them (`webSearchUsd`), every grant holds their
   * cost, and a run with `costMaxUsd` whose model says `unbounded` is refused.
   */
  readonly webSearchesMax?: WebSearchesMax
  stream(request: ModelRequest, context: ModelContext): Observable<ModelSignal>
}
