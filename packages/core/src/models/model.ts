import type { Observable } from 'rxjs'
import type { RequestAddition } from '../events/agent-definition.ts'
import type { ModelRef } from '../events/content.ts'
import type { JsonObject } from '../values/json.ts'
import type { MaxWebSearches } from '../events/usage.ts'
import type { ModelRequest } from '../events/model-request.ts'
import type { ModelSignal } from '../events/signals.ts'
import type { Clock } from '../values/host.ts'

/** Time limits of a model call, in milliseconds. A call that exceeds one has failed, and is tried again. */
export interface ModelTimeouts {
  /** The longest silence of the model. */
  readonly idleMs?: number | undefined
  /** The longest time from the start of the call to its end. */
  readonly totalMs?: number | undefined
  /** The longest wait for an async `prepareTurn`. Default: a minute. */
  readonly prepareMs?: number | undefined
}

/** The context that the runtime gives a model call. */
export interface ModelContext {
  /** For timeouts: adapters use no timer of their own. */
  readonly clock: Clock
}

/**
 * A model that is reached over a wire. An adapter only translates the request and the reply of one call; it never
 * retries and never decides.
 *
 * `stream` starts the call on subscription. It reports signals, ends with `model_finished` and completes; or it
 * errors with a `ProviderError`. Anything else (another error, completion without `model_finished`, a report that
 * JSON cannot carry, a finished reply that contradicts the streamed parts) counts as a broken adapter: the runtime
 * records a failure of class `protocol`. Unsubscribing closes the connection before it returns, and the model reports
 * nothing after it.
 */
export interface Model extends ModelRef {
  /**
   * The options that decide a call: its server, its conversation, how the model works. The ledger records them, so
   * that a resume with other options is detected: no keys, no headers.
   */
  readonly pinnedOptions?: JsonObject
  /**
   * The fields of its requests that its options add or replace, beyond what a `ModelRequest` says. Every call records
   * them, and a resume with others is detected. They hold for all calls: the body that is sent is a function of the
   * recorded request, the options and these. No values: a digest of each.
   */
  readonly additions?: readonly RequestAddition[]
  /**
   * The most web searches that the provider runs within one call that allows tools, as the adapter's settings limit
   * them. Absent if the provider runs none, or bills none. With a price for them (`webSearchUsd`), every grant
   * reserves their cost, and a run with `maxCostUsd` whose model returns `unbounded` is refused.
   */
  readonly maxWebSearches?: MaxWebSearches
  /** True if it can continue a conversation that its provider keeps: `providerState` of a request. */
  readonly keepsState?: true
  stream(request: ModelRequest, context: ModelContext): Observable<ModelSignal>
}
