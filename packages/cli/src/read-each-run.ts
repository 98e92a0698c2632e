import type { Ledger, RunId } from '@tallystick/core'
import { TallystickError } from '@tallystick/core'
import type { CommandContext } from './command-context.ts'
import type { ExitCode } from './exit-code.ts'
import { exitCodeOf, exitCodes } from './exit-code.ts'

/** Codes of errors that are about the record of one run, and say nothing about the others. */
const ofOneRun: ReadonlySet<string> = new Set([
  'ledger_damaged',
  'law_broken',
  'illegal_transition',
  'unknown_event',
])

/** What is done with each run, and with each that cannot be read. */
export interface RunReader {
  readonly read: (runId: RunId) => Promise<void>
  readonly unreadable?: (runId: RunId, error: TallystickError) => Promise<void>
  /** Which runs, in which order. Every run, the newest first, where not given. */
  readonly runs?: AsyncIterable<RunId>
}

/**
 * Reads the runs of a ledger, one after the other. One that cannot be read is named on stderr and keeps nobody from the
 * others; the exit code is that of the first such run.
 */
export async function readEachRun(
  { json, say }: CommandContext,
  ledger: Ledger,
  { read, unreadable, runs = runsFromTheLast(ledger) }: RunReader,
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
      await unreadable?.(runId, error)
    }
  }
  return first ?? exitCodes.ok
}

async function* runsFromTheLast(ledger: Ledger): AsyncGenerator<RunId> {
  for await (const { runId } of ledger.runs()) yield runId
}

/** Every run, in the order in which they were made. */
export async function* runsFromTheFirst(ledger: Ledger): AsyncGenerator<RunId> {
  const runIds: RunId[] = []
  for await (const runId of runsFromTheLast(ledger)) runIds.push(runId)
  yield* runIds.toReversed()
}
