/** Every error that Tallystick throws. `code` is stable; the message says what happened, why it matters, what to do. */
export class TallystickError extends Error {
  readonly code: string
  constructor(code: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
    this.name = new.target.name
  }
}

/**
 * Something passed by the caller cannot work: an agent, an option, a schema, a file path. Code `configuration`, or
 * `key_used` for an idempotency key that began something else before.
 */
export class ConfigurationError extends TallystickError {
  constructor(message: string, options?: { readonly cause?: unknown; readonly code?: 'key_used' }) {
    super(options?.code ?? 'configuration', message, options)
  }
}

/** An event that is not legal in the phase of the run. Code `illegal_transition`. */
export class IllegalTransitionError extends TallystickError {
  readonly phase: string
  readonly event: string
  readonly legal: readonly string[]
  constructor(phase: string, event: string, legal: readonly string[], detail?: string) {
    super(
      'illegal_transition',
      `The event ${event} is not legal in the phase ${phase}${detail ? `: ${detail}` : ''}. ` +
        `Legal would be: ${legal.join(', ')}. The ledger is damaged, or its writer is at fault: run verify on it.`,
    )
    this.phase = phase
    this.event = event
    this.legal = legal
  }
}

/** One of the laws does not hold. Code `law_broken`. */
export class LawBrokenError extends TallystickError {
  readonly law: number
  readonly seq: number
  constructor(law: number, seq: number, detail: string) {
    super(
      'law_broken',
      `Law ${law} is broken at seq ${seq}: ${detail}. The ledger is damaged, or its writer is at fault: run verify on it.`,
    )
    this.law = law
    this.seq = seq
  }
}

/** The part of the ledger that differs from what a write expected. */
export type ConflictKind = 'seq' | 'epoch' | 'unique' | 'session' | 'inbox' | 'ended' | 'lease'

/**
 * The ledger is not as a write expects it. Code `ledger_conflict`. `epoch` and `seq`: another writer holds the run.
 * `unique`: an event that may be recorded once is already recorded. `session`: another run of the session is under
 * way. `inbox`: a run was to end with unread entries in its inbox. `ended`: a command came after a run's end. `lease`:
 * another process drives the run.
 */
export class LedgerConflictError extends TallystickError {
  readonly kind: ConflictKind
  /** Of kind `session`: the run that is under way, if it is known. */
  declare readonly busy?: BusyRun
  /** Of kind `lease`: who drives the run, and how long that lasts unless it is renewed, in milliseconds. */
  declare readonly lease?: { readonly holder: string; readonly leftMs: number }
  constructor(
    kind: ConflictKind,
    message: string,
    { busy, lease }: Partial<Pick<LedgerConflictError, 'busy' | 'lease'>> = {},
  ) {
    super('ledger_conflict', message)
    this.kind = kind
    if (busy) this.busy = busy
    if (lease) this.lease = lease
  }
}

/**
 * A run of a session that has not ended. `under_way`: a process drives it. `suspended`: it waits for a command.
 * `interrupted`: no process drives it, and `resume` continues it.
 */
export interface BusyRun {
  readonly runId: string
  readonly status: 'under_way' | 'suspended' | 'interrupted'
  /**
   * The input that was to join the run and that the run's inbox keeps: `resume` reads it. A retry with this `inputId`
   * does not send it again.
   */
  readonly inputId?: string
}

/** Stored bytes differ from the written ones. Code `ledger_damaged`. */
export class LedgerDamagedError extends TallystickError {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('ledger_damaged', message, options)
  }
}

/** An event of a type, or of a version, that this release does not know. Code `unknown_event`. */
export class UnknownEventError extends TallystickError {
  constructor(runId: string, seq: number, what: string) {
    super(
      'unknown_event',
      `Event ${seq} of run ${runId} is ${what}, which this release does not know, so it cannot tell what ` +
        `follows from it. A newer release wrote it: read the run with that one. Exporting it is possible all the same.`,
    )
  }
}

/** Why a ledger that was opened with `readOnly` is not available. `absent`: there is no ledger at that place. */
export type UnavailableReason = 'absent'

/** The store cannot be opened, read or written. Code `ledger_unavailable`. */
export class LedgerUnavailableError extends TallystickError {
  /** The reason, for programs that act on it; absent for all other reasons, which only the message names. */
  declare readonly reason?: UnavailableReason

  constructor(
    message: string,
    options: { readonly cause?: unknown; readonly reason?: UnavailableReason } = {},
  ) {
    const { reason, ...cause } = options
    super('ledger_unavailable', message, cause)
    if (reason !== undefined) this.reason = reason
  }
}

/** No run of that id in this ledger. Code `run_not_found`. */
export class RunNotFoundError extends TallystickError {
  constructor(runId: string) {
    super(
      'run_not_found',
      `Run ${runId} is not in this ledger. List its runs to see which are, or open another ledger.`,
    )
  }
}

/** A model call failed, as an adapter reports it. Code `provider`. Holds no payload and no secret. */
export class ProviderError extends TallystickError implements ModelFailure {
  readonly class: FailureClass
  readonly retryable: boolean
  declare readonly retryAfterMs?: number
  declare readonly status?: number
  declare readonly requestId?: string
  constructor(failure: ModelFailure, options?: { readonly cause?: unknown }) {
    super('provider', failure.message, options)
    this.class = failure.class
    this.retryable = failure.retryable
    if (failure.retryAfterMs !== undefined) this.retryAfterMs = failure.retryAfterMs
    if (failure.status !== undefined) this.status = failure.status
    if (failure.requestId !== undefined) this.requestId = failure.requestId
  }

  /** The failure as data, for the ledger. */
  toFailure(): ModelFailure {
    const { class: failureClass, message, retryable, retryAfterMs, status, requestId } = this
    return {
      class: failureClass,
      message,
      retryable,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(status !== undefined && { status }),
      ...(requestId !== undefined && { requestId }),
    }
  }
}

/**
 * The kind of failure that a model call ended in. `refused`: the model would not answer, and another is asked;
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
  /** True if the same request may succeed later. */
  readonly retryable: boolean
  /** How long the provider asks to wait, in milliseconds. */
  readonly retryAfterMs?: number
  /** The HTTP status, if there was an answer. */
  readonly status?: number
  /** The provider's id for the request, for its support. */
  readonly requestId?: string
}
