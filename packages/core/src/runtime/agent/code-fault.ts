import { ConfigurationError } from '../../vocabulary/errors.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/** What is on record of a run whose code is at fault. */
interface OnRecord {
  readonly runId: RunId
  readonly isOnRecord: boolean
}

/** An error of the application's code, which says what is on record of the run, and how to continue it; any other error as it is. */
export function withWayOn(error: unknown, { runId, isOnRecord }: OnRecord): unknown {
  if (!(error instanceof ConfigurationError)) return error
  const wayOn = isOnRecord
    ? `Run ${runId} is on record up to here, and nothing is lost: continue it with resume once this is corrected.`
    : `Nothing of run ${runId} is on record: start it again once this is corrected.`
  return new ConfigurationError(`${error.message} ${wayOn}`, { cause: error.cause ?? error })
}
