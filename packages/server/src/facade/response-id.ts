import { parseRunId, type RunId } from '@tallystick/core/vocabulary'

/** A response is a run from an event on, until it ends or waits. */
export function responseIdOf(runId: string, after: number): string {
  return after === 0 ? `resp_${runId}` : `resp_${runId}_${after}`
}

/** Returns the run of a response; `undefined` if this server gave no such id. */
export function runOfResponse(responseId: string): RunId | undefined {
  const [, run = ''] = /^resp_([0-9a-f-]{36})(?:_\d{1,15})?$/.exec(responseId) ?? []
  return parseRunId(run)
}
