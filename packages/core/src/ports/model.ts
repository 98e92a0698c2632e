import type { Observable } from 'rxjs'
import type { Message, ModelRef } from '../vocabulary/content.ts'
import type { ModelSignal } from '../vocabulary/signal.ts'
import type { ToolChoice, ToolDefinition } from '../vocabulary/tool-definition.ts'
import type { Clock } from './clock.ts'

/** What one model call carries. The ledger can rebuild it, and records its digest before the call. */
export interface ModelRequest {
  readonly instructions: string
  /** The history. Every tool call in it has its result, in the message right behind. Never mutated: cache by identity. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolDefinition[]
  readonly toolChoice: ToolChoice
  readonly parallelToolCalls: boolean
  readonly maxOutputTokens?: number
}

/** What the runtime lends a model call. */
export interface ModelContext {
  /** For watchdogs: adapters use no timer of their own. */
  readonly clock: Clock
}

/**
 * A model behind a wire. Two pure translations around one call; it never retries and never decides.
 *
 * `stream` starts the call when it is subscribed to. It reports signals, ends with `model_finished` and completes;
 * or it errors with a `ProviderError`. Anything else (another error, completion without `model_finished`) the runtime
 * takes for a broken adapter and records as a failure of class `protocol`. Unsubscribing closes the connection
 * before it returns control, and nothing is reported after it.
 */
export interface Model extends ModelRef {
  stream(request: ModelRequest, context: ModelContext): Observable<ModelSignal>
}
