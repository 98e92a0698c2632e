import { formatErrorSentence } from '@tallystick/core/internal'
import { ToolError } from '../define/outcome.ts'
import type { ToolContext } from '../define/run-tool.ts'
import type { Timers } from '../host.ts'
import type { NamedServer, SharedParts } from './client.ts'
import { lostResponseCode, isUnknownSession } from './fetch.ts'
import { cleanText, withoutAnySecrets } from './secrets.ts'

/** The time of one call. */
export interface CallDeadline {
  /** Aborts when the time is over. */
  readonly signal: AbortSignal
  /** The server has shown that it is at work. */
  readonly progress: () => void
  /** A person decides: the time stands still until `resume`. */
  readonly pause: () => void
  readonly resume: () => void
  readonly stop: () => void
  /** The run's limits, to which the server's questions to a model are charged. Absent outside of runs. */
  readonly budget: ModelBudget | undefined
}

/** The limits on model calls of the run that a call belongs to. */
export type ModelBudget = Pick<ToolContext, 'left' | 'spend'>

/** Starts the time of a call: `quietMs` without progress, and `totalMs` at most since the last question was answered. */
export function startDeadline(
  timers: Timers,
  quietMs: number,
  totalMs: number,
  budget?: ModelBudget,
): CallDeadline {
  const over = new AbortController()
  let pauses = 0
  let hasStopped = false
  let cancelQuiet = (): void => {}
  let cancelTotal = (): void => {}
  const end = (): void => {
    cancelQuiet()
    cancelTotal()
  }
  const giveUp = (): void => {
    end()
    over.abort(new DOMException('The time of the call is over.', 'TimeoutError'))
  }
  const isRunning = (): boolean => pauses === 0 && !hasStopped && !over.signal.aborted
  const progress = (): void => {
    if (!isRunning()) return
    cancelQuiet()
    cancelQuiet = timers.schedule(quietMs, giveUp)
  }
  const begin = (): void => {
    if (!isRunning()) return
    progress()
    cancelTotal = timers.schedule(totalMs, giveUp)
  }
  begin()
  return {
    signal: over.signal,
    budget,
    progress,
    pause() {
      pauses++
      end()
    },
    resume() {
      pauses--
      begin()
    },
    stop() {
      hasStopped = true
      end()
    },
  }
}

/** Has the deadlines that there are now stand still. Returns what lets them run again. */
export function pauseAll(deadlines: Iterable<CallDeadline>): () => void {
  const paused = [...deadlines]
  for (const deadline of paused) deadline.pause()
  return () => {
    for (const deadline of paused) deadline.resume()
  }
}

/** The longest time that timers of the platform take, in milliseconds: for requests whose time is measured elsewhere. */
export const noTimeoutMs = 2_147_483_647

/** Resolves after a time, or when the signal aborts. */
export function pause(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = timers.schedule(ms, end)
    signal.addEventListener('abort', end)
  })
}

/** Settles like the work, or rejects with the reason of the signal when that aborts before. */
export function waitUnlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/**
 * The meaning of a failed call:
 * - `unsent`: nothing reached the server
 * - `unknown_session`: the server does not know the session any more, so that it ran nothing
 * - `unauthorized`: the server wants another authorization, and ran nothing
 * - `in_doubt`: the request was sent, and the connection ended before the answer
 * - `answered`: the server refused or failed, and `text` says how
 */
export type CallFailure =
  | { readonly kind: 'unsent' | 'unknown_session' | 'unauthorized' | 'in_doubt' }
  | { readonly kind: 'answered'; readonly text: string }

/** Failures to connect: a request that they end was never sent. */
const unsentCodes: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
  ...['CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'ERR_TLS_CERT_ALTNAME_INVALID'],
])

/** Reads what the client library threw at a call. */
export function readCallFailure(error: unknown, { sdk }: Pick<SharedParts, 'sdk'>): CallFailure {
  if (error instanceof sdk.SdkHttpError) return readHttpFailure(error.status, error.message)
  if (error instanceof sdk.UnauthorizedError) return { kind: 'unauthorized' }
  if (error instanceof sdk.ProtocolError) {
    return error.code === (lostResponseCode as number)
      ? { kind: 'in_doubt' }
      : { kind: 'answered', text: `The server answered with an error: ${error.message}` }
  }
  if (error instanceof sdk.SdkError) {
    if (error.code === sdk.SdkErrorCode.NotConnected) return { kind: 'unsent' }
    if (error.code === sdk.SdkErrorCode.ConnectionClosed) return { kind: 'in_doubt' }
    return { kind: 'answered', text: `The call failed: ${formatErrorSentence(error)} ${happened}` }
  }
  return { kind: wasUnsent(error) ? 'unsent' : 'in_doubt' }
}

const happened = 'What was asked for may have happened all the same: find out before asking for it again.'

function readHttpFailure(status: number, message: string): CallFailure {
  // Many servers answer 400 to a session that they have forgotten, where the protocol asks for 404.
  if (status === 404 || (status === 400 && isUnknownSession(message))) return { kind: 'unknown_session' }
  if (status === 401 || status === 403) return { kind: 'answered', text: describeUnauthorized(status) }
  // Something on the way lost the server or its answer: it may have done the work.
  if (status === 502 || status === 504) return { kind: 'in_doubt' }
  const after = status >= 500 && status !== 503 ? ` ${happened}` : ''
  return { kind: 'answered', text: `The server answered with HTTP ${status}: ${message}${after}` }
}

function describeUnauthorized(status: number): string {
  return `The server refused the call (HTTP ${status}): it wants another authorization. Nothing was run.`
}

function wasUnsent(error: unknown): boolean {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    if ('code' in each && unsentCodes.has(each.code)) return true
    if (each instanceof AggregateError && each.errors.length > 0 && each.errors.every(wasUnsent)) return true
  }
  return false
}

/** The error that a model reads once no further attempt is made. */
export function createFailureError(
  failure: CallFailure,
  { name, secrets }: NamedServer,
  faults: readonly string[],
): ToolError {
  switch (failure.kind) {
    case 'answered':
      return new ToolError(cleanText(withoutAnySecrets(failure.text, secrets), 8_000))
    case 'unauthorized':
      return new ToolError(describeUnauthorized(401))
    case 'in_doubt':
      return new ToolError(
        `The connection to the MCP server ${name} was lost during this call. It may have taken effect: find out before you ask for it again.`,
        { outcome: 'interrupted' },
      )
    case 'unsent':
    case 'unknown_session':
      return createUnreachable(name, faults)
  }
}

/** The error that a model reads if there is no connection. */
export function createUnreachable(name: string, faults: readonly string[]): ToolError {
  const why = faults[0] === undefined ? '' : ` (${faults[0].split('\n')[0]})`
  return new ToolError(
    `The MCP server ${name} cannot be reached now${why}. Nothing was run. Continue without it, or try again later.`,
  )
}
