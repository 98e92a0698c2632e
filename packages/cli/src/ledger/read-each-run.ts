import type { Ledger, RunId } from '@tallystick/core'
import { TallystickError } from '@tallystick/core'
import type { CommandContext } from '../command/command-context.ts'
import type { ExitCode } from '../command/exit-code.ts'
import { exitCodeOf, exitCodes } from '../command/exit-code.ts'

/** Codes of errors that are about the record of one run, and say nothing about the others. */
const ofOneRun: ReadonlySet<string> = new Set([
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
])

/**
 * Reads runs of a ledger, one after the other. A run that cannot be read is named on stderr, and the others are still
 * read; the exit code is that of the first such run.
 */
export async function readEachRun(
  { json, say }: CommandContext,
  runs: AsyncIterable<RunId>,
  read: (runId: RunId) => Promise<void>,
): Promise<ExitCode> {
  let first: ExitCode | undefined
  for await (const runId of runs) {
    try {
      await read(runId)
    } catch (error) {
      if (!(error instanceof TallystickError) || !ofOneRun.has(error.code)) throw error
      const { code, message } = error
      const exitCode = exitCodeOf(error)
      first ??= exitCode
      say(json ? JSON.stringify({ error: { code, message, exitCode } }) : `error: ${message}`)
    }
  }
  return first ?? exitCodes.ok
}

/** Every run, in the order in which they were made. */
export async function* runsFromTheFirst(ledger: Ledger): AsyncGenerator<RunId> {
  const runIds: RunId[] = []
  for await (const { runId } of ledger.runs()) runIds.push(runId)
  yield* runIds.toReversed()
}
