import type { FailureClass, ModelFailure } from '@tallystick/core/vocabulary'

/** What a failure is, and whether the same request may succeed later. */
export type Verdict = Pick<ModelFailure, 'class' | 'retryable'>

/** The same request may succeed later. */
export function retryable(failureClass: FailureClass): Verdict {
  return { class: failureClass, retryable: true }
}

/** The same request will fail again. */
export function final(failureClass: FailureClass): Verdict {
  return { class: failureClass, retryable: false }
}

/** Verdicts by HTTP status. */
export type StatusVerdicts = { readonly [status: number]: Verdict }

const byStatus: StatusVerdicts = {
  401: final('authentication'),
  402: final('permission'),
  403: final('permission'),
  404: final('not_found'),
  408: retryable('timeout'),
  409: retryable('server'),
  413: final('context_overflow'),
  429: retryable('rate_limited'),
  499: retryable('network'),
  501: final('server'),
  503: retryable('overloaded'),
  504: retryable('timeout'),
  529: retryable('overloaded'),
}

/** Judges an answer by its status alone. `own`: what differs for this wire. Without a status the other side is at fault. */
export function verdictOfStatus(status: number | undefined, own: StatusVerdicts = {}): Verdict {
  if (status === undefined) return retryable('server')
  const known = own[status] ?? byStatus[status]
  return known ?? (status >= 500 ? retryable('server') : final('invalid_request'))
}
