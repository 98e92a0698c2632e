import { ProviderError } from '@tallystick/core'
import { named } from './failure-text.ts'
import { networkFailure } from './network-failure.ts'
import type { HeaderReader } from './retry-after.ts'
import { final, retryable } from './verdict.ts'
import type { CommonFailures, KnownFacts } from './wire-failures.ts'

/** The `APIError` of an official client, by its shape: another copy of the SDK, or another client, throws another class. */
export interface ApiError extends Error {
  readonly status: number | undefined
  readonly headers: HeaderReader | undefined
  /** What the body holds, or the record of the stream. */
  readonly error: unknown
}

/** Whether an official client threw this for an answer, or for a call without one. */
export function isApiError(error: unknown): error is ApiError {
  return error instanceof Error && 'status' in error && 'headers' in error && 'error' in error
}

/** The failure for what an official client threw, where that is no `ApiError`. `keyWords` tell that it found no key. */
export function clientFailure(
  { failed, thrownFailure }: CommonFailures,
  error: unknown,
  keyWords: RegExp,
  known: KnownFacts,
): ProviderError {
  if (!(error instanceof Error) || networkFailure(error) !== undefined) return thrownFailure(error, known)
  if (error.name === 'SyntaxError') {
    return failed(retryable('protocol'), 'The stream holds an event that is not valid JSON', known)
  }
  if (isBrowserRefusal(error)) {
    return new ProviderError({ ...final('invalid_request'), message: browserAdvice })
  }
  if (keyWords.test(error.message)) {
    return failed(final('authentication'), 'There is no usable key for the call', known)
  }
  return thrownFailure(error, known)
}

/** No answer at all: the client says only that, and keeps what happened as the cause. */
export function connectionFailure(
  { failed }: CommonFailures,
  { cause }: Error,
  { who, timedOut, known }: { readonly who: string; readonly timedOut: boolean; readonly known: KnownFacts },
): ProviderError {
  const network = networkFailure(cause)
  if (network?.class === 'timeout' || timedOut) {
    return failed(retryable('timeout'), `No answer came in time${named(network?.code)}`, known)
  }
  return failed(retryable('network'), `${who} could not be reached${named(network?.code)}`, known)
}

/** Whether to try again, where the service says so outright. */
export function statedRetry(headers: HeaderReader | undefined): boolean | undefined {
  const stated = headers?.get('x-should-retry')
  return stated === 'true' ? true : stated === 'false' ? false : undefined
}

/**
 * Whether an official client refuses to be made where it is: in a page that its user, and any script in it, can read keys
 * from. It says so in words alone, which speak of credentials as well.
 */
function isBrowserRefusal(error: unknown): boolean {
  return error instanceof Error && error.message.includes('dangerouslyAllowBrowser')
}

/** What to do about it. */
const browserAdvice =
  'The official client does not run in a browser, where a user of the page could read the key. Let a server of yours make the calls, or pass a client that was made with dangerouslyAllowBrowser.'
