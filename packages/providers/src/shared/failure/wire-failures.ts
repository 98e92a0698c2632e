import { ProviderError } from '@tallystick/core'
import { type FailureClass, type ModelFailure } from '@tallystick/core/vocabulary'
import { failureText, named } from './failure-text.ts'
import type { Overlong } from '../stream/silence-watch.ts'
import { networkFailure } from './network-failure.ts'
import { final, retryable, type Verdict } from './verdict.ts'

/** What to do about a failure, by its class. */
type Advice = { readonly [failureClass in FailureClass]: string }

const commonAdvice: Omit<Advice, 'authentication' | 'permission' | 'not_found'> = {
  rate_limited: 'Wait before the next call, or raise the limits of the account.',
  overloaded: 'The service is busy; try again later.',
  timeout: 'Try again; if it stays so, allow more time.',
  network: 'Check that the address can be reached, then try again.',
  truncated: 'What came of the reply is incomplete; try the call again.',
  invalid_request: 'The same request will be refused again: change what the message names.',
  context_overflow: 'The history does not fit: compact it, or ask for fewer output tokens.',
  content_filtered: 'The output was withheld; the same request will meet the same end.',
  refused: 'The model will not answer this; ask another model, or in other words.',
  protocol: 'The answer cannot be trusted; check baseURL and any gateway on the way.',
  empty_reply: 'Ask again; if it stays so, check the instructions and the length of the reply.',
  server: 'The fault is on the other side; try again later.',
  interrupted: 'Resume the run.',
}

/** How a wire words its failures. */
export interface WireWords {
  /** Who answers, as within a sentence: `Anthropic`, `the service`. */
  readonly who: string
  /** What is done with a call that takes too long. */
  readonly closed?: string
  /** What to do about a failure, where that is the wire's own. */
  readonly advice: Partial<Advice> & Pick<Advice, 'authentication' | 'permission' | 'not_found'>
}

/** How a call took too long. */
const overlong: { readonly [what in Overlong]: (who: string, limitMs: number) => string } = {
  silent: (who, limitMs) => `Nothing came from ${who} for ${limitMs} ms`,
  empty: (who, limitMs) => `Nothing of the reply came from ${who} for ${limitMs} ms (contentTimeoutMs)`,
  endless: (_, limitMs) => `The reply had not ended after ${limitMs} ms (totalTimeoutMs)`,
}

/** What is known of a failed call beside its class. */
export type KnownFacts = Pick<Partial<ModelFailure>, 'status' | 'retryAfterMs' | 'requestId'>

/** What is known when a call fails. */
export interface FailureFacts {
  /** Milliseconds since 1970 UTC, to read a date in `retry-after` against. */
  readonly now: number
  readonly requestId?: string | undefined
}

/** The failures of one wire. */
export interface WireFailures extends CommonFailures {
  /** Returns the failure for whatever the client, `fetch` or the stream threw. It holds no payload and no key. */
  readonly providerErrorOf: (error: unknown, facts: FailureFacts) => ProviderError
  /** Returns the failure that an answer of status 200 tells of. */
  readonly failureInStream: (error: unknown) => ProviderError
}

/** The failures that every wire reports alike. */
export interface CommonFailures {
  /** A failure whose message says what happened and what to do about it. */
  readonly failed: (verdict: Verdict, what: string, known?: KnownFacts) => ProviderError
  /** The failure for an error that the wire does not know: a connection that broke, or something unexpected. */
  readonly thrownFailure: (error: unknown, known?: KnownFacts) => ProviderError
  /** The stream ended, and nothing proved the reply whole. */
  readonly truncatedReply: (requestId?: string) => ProviderError
  /** The call took longer than is allowed. */
  readonly overlongReply: (what: Overlong, limitMs: number, requestId?: string) => ProviderError
  /** The answer is no event stream, whatever it is. */
  readonly notAStream: (contentType: string, requestId?: string) => ProviderError
}

/** The failures that a wire reports in these words. */
export function commonFailures({
  who,
  advice: own,
  closed = 'the connection was closed',
}: WireWords): CommonFailures {
  const advice: Advice = { ...commonAdvice, ...own }
  const failed: CommonFailures['failed'] = (verdict, what, known) =>
    new ProviderError({ ...verdict, message: `${what}. ${advice[verdict.class]}`, ...known })
  const knownId = (requestId: string | undefined): KnownFacts =>
    requestId === undefined ? {} : { requestId }
  return {
    failed,
    thrownFailure(error, known) {
      const network = networkFailure(error)
      if (network !== undefined) {
        return failed(retryable(network.class), `The connection broke${named(network.code)}`, known)
      }
      const name = (error instanceof Error && error.name) || typeof error
      const message = `The call failed unexpectedly (${name}). ${advice.protocol}`
      return new ProviderError({ ...final('protocol'), message, ...known }, { cause: error })
    },
    truncatedReply: (requestId) =>
      failed(retryable('truncated'), 'The stream ended before the reply did', knownId(requestId)),
    overlongReply(what, limitMs, requestId) {
      // A reply without an end would have none the next time.
      const verdict = what === 'endless' ? final('timeout') : retryable('timeout')
      return failed(verdict, `${overlong[what](who, limitMs)}, and ${closed}`, knownId(requestId))
    },
    notAStream(contentType, requestId) {
      const what = `The answer is of type ${failureText(contentType)}, not an event stream`
      return failed(final('protocol'), what, knownId(requestId))
    },
  }
}

/** The same failure with the id of the request, where it has none yet. */
export function withRequestId(error: ProviderError, requestId: string | undefined): ProviderError {
  if (requestId === undefined || error.requestId !== undefined) return error
  return new ProviderError({ ...error.toFailure(), requestId }, { cause: error.cause })
}
