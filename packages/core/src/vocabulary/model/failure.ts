/**
 * What kind of failure a model call ended in. `refused`: the model would not answer, and another is asked;
 * `empty_reply`: its reply was whole, and held no word and no call; `interrupted`: the process that made the call died.
 */
export const failureClasses = [
  'rate_limited',
  'overloaded',
  'timeout',
  'network',
  'truncated',
  'invalid_request',
  'authentication',
  'permission',
  'not_found',
  'context_overflow',
  'content_filtered',
  'refused',
  'protocol',
  'server',
  'empty_reply',
  'interrupted',
] as const
export type FailureClass = (typeof failureClasses)[number]

/** A failed model call, as data. Holds no payload and no secret. */
export interface ModelFailure {
  readonly class: FailureClass
  readonly message: string
  /** Whether the same request may succeed later. */
  readonly retryable: boolean
  /** How long the provider asks to wait, in milliseconds. */
  readonly retryAfterMs?: number
  /** The HTTP status, if there was an answer. */
  readonly status?: number
  /** The provider's id for the request, for its support. */
  readonly requestId?: string
}
