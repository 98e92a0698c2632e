import { option, type OptionCheck } from '@tallystick/core/kit'
import { defaultRetryPolicy, type GivenRetryPolicy, type RetryPolicy } from '@tallystick/core/vocabulary'
import { ToolError } from './tool-error.ts'

/** How the failed calls of a tool are tried again. */
export interface RetryOptions extends GivenRetryPolicy {
  /** Attempts of one call in all, the first included. */
  readonly maxAttempts: number
  /**
   * Whether a call that threw this error may be made again. Default: true for all errors except a `ToolError` that is
   * not `retryable`. If it throws, the call is not tried again.
   */
  readonly when?: ((error: unknown) => boolean) | undefined
}

const { anyFunction, fields, maybe, numberFrom } = option
const wait = maybe(numberFrom(0))

/** What can be given as `retry`. */
export const retryOptions: OptionCheck = fields<RetryOptions>(
  {
    maxAttempts: numberFrom(1, { whole: true }),
    baseMs: wait,
    capMs: wait,
    maxRetryAfterMs: wait,
    maxTotalMs: wait,
    when: maybe(anyFunction),
  },
  {
    attempts: 'maxAttempts',
    retries: 'maxAttempts',
    maxRetries: 'maxAttempts',
    backoffMs: 'baseMs',
    initialDelayMs: 'baseMs',
    minTimeout: 'baseMs',
    maxBackoffMs: 'capMs',
    maxDelayMs: 'capMs',
    maxTimeout: 'capMs',
    retryOn: 'when',
    shouldRetry: 'when',
  },
)

/** The policy that a runtime keeps: data, which the ledger holds. */
export function retryPolicyOf({ when: _when, ...given }: RetryOptions): RetryPolicy {
  const { maxAttempts, baseMs, capMs, maxRetryAfterMs, maxTotalMs } = given
  const { baseMs: base, capMs: cap, maxRetryAfterMs: longest } = defaultRetryPolicy
  return {
    maxAttempts,
    baseMs: baseMs ?? base,
    capMs: capMs ?? cap,
    maxRetryAfterMs: maxRetryAfterMs ?? longest,
    ...(maxTotalMs !== undefined && { maxTotalMs }),
  }
}

/** What an attempt says of trying again. */
export interface Again {
  readonly retryable?: true
  readonly retryAfterMs?: number
}

/** Whether a call may be tried again that threw this. */
export function againAfter(retry: RetryOptions | undefined, thrown: unknown): Again {
  if (retry === undefined) return {}
  try {
    const own = thrown instanceof ToolError ? thrown : undefined
    const mayRetry: unknown = retry.when ? retry.when(thrown) : (own?.retryable ?? true)
    if (mayRetry !== true) return {}
    const retryAfterMs = own?.retryAfterMs
    const isWait = Number.isFinite(retryAfterMs) && (retryAfterMs as number) >= 0
    return { retryable: true, ...(isWait && { retryAfterMs: retryAfterMs as number }) }
  } catch {
    // A rule that fails allows nothing: what it would have said is not known.
    return {}
  }
}
