import { omitUndefined } from '@tallystick/core/kit'
import { callerKey } from './caller-key.ts'
import type { Principal } from './principal.ts'

/** What the headers of a request say of the run that it begins. */
export interface StartHeaders {
  /** Under which the request takes effect once. */
  readonly idempotencyKey?: string
  /** The caller's place in a trace, which the run continues: a `traceparent` of W3C Trace Context. */
  readonly traceId?: string
}

/** Reads the headers of a request that begins a run. A `traceparent` of another form is ignored, as its specification says. */
export function startHeaders({ headers }: Request, principal: Principal): StartHeaders {
  const given = headers.get('traceparent') ?? ''
  return omitUndefined({
    idempotencyKey: callerKey(principal, headers.get('idempotency-key') ?? undefined),
    traceId: /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(given) ? given : undefined,
  })
}
