import { ConfigurationError } from '../../values/errors.ts'
import type { RunId } from '../../values/ids.ts'

/** What is on record of a run whose code is at fault. */
interface OnRecord {
  readonly runId: RunId
  readonly isOnRecord: boolean
}

/**
 * Adds to a `ConfigurationError` what is on record of the run, and whether to resume it or to start it again. Returns any other
 * error as it is.
 */
export function withContinuation(error: unknown, { runId, isOnRecord }: OnRecord): unknown {
  if (!(error instanceof ConfigurationError)) return error
  const howToContinue = isOnRecord
    ? `Run ${runId} is on record up to here, and nothing is lost: continue it with resume once this is corrected.`
    : `Nothing of run ${runId} is on record: start it again once this is corrected.`
  return new ConfigurationError(`${error.message} ${howToContinue}`, { cause: error.cause ?? error })
}
