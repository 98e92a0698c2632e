import { ConfigurationError } from '../../vocabulary/errors.ts'
import { textOfError } from '../../vocabulary/values/error-text.ts'
import type { RunState } from '../../machine/state/state.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { RecordedRun } from '../definition/runtime-parts.ts'
import type { Drive } from './drive.ts'

/**
 * What a run that is taken up is driven with: the context that was given, or the one that the runtime makes of the
 * record, where the run was started with one. It is kept for what follows in this process.
 */
export async function withFoundContext(state: RunState, drive: Drive): Promise<Drive> {
  const { contextOf } = drive.parts
  if (contextOf === undefined || !state.withContext || drive.context !== undefined) return drive
  const context = await madeContext(state, contextOf)
  drive.keepContext(context)
  return { ...drive, context }
}

async function madeContext(
  state: RunState,
  contextOf: NonNullable<Drive['parts']['contextOf']>,
): Promise<unknown> {
  const { runId, agent, sessionId, subject, labels, parent } = state
  const run: RecordedRun = { runId, agent, ...omitUndefined({ sessionId, subject, labels, parent }) }
  try {
    return await contextOf(run)
  } catch (error) {
    throw new ConfigurationError(
      `The contextOf of this runtime made no context for run ${runId}: ${textOfError(error)}. Nothing was written; correct it and resume the run, or give the context to resume.`,
      { cause: error },
    )
  }
}
