import type { RunId } from '@tallystick/core'
import { exportEvents } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { withLedger } from '../open-ledger.ts'
import { readEachRun, runsFromTheFirst } from '../read-each-run.ts'

/** What `export` was given. */
export interface ExportOptions {
  readonly ledger: string
  /** The one run to export; every run where none is named. */
  readonly run?: string
}

/**
 * `export`: the events as JSON Lines, run by run in the order in which they were made, so that `import` makes them
 * in that order. Damage in one run keeps no other from being exported.
 */
export function exportLedger(
  context: CommandContext,
  { ledger: ledgerPath, run }: ExportOptions,
): Promise<ExitCode> {
  const place = { programName: context.programName, ledgerPath }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const read = async (runId: RunId): Promise<void> => {
      for await (const line of exportEvents(ledger, runId)) await context.print(`${line}\n`)
    }
    if (run === undefined) return await readEachRun(context, ledger, { read, runs: runsFromTheFirst(ledger) })
    await read(await findRun(ledger, run, place))
    return exitCodes.ok
  })
}
