import { exportEvents } from '@tallystick/ledger'
import type { CommandContext } from '../command-context.ts'
import type { ExitCode } from '../exit-code.ts'
import { exitCodes } from '../exit-code.ts'
import { findRun } from '../find-run.ts'
import { withLedger } from '../open-ledger.ts'

/** What `export` was given. */
export interface ExportOptions {
  readonly ledger: string
  /** The one run to export; every run where none is named. */
  readonly run?: string
}

/** `export`: the events as JSON Lines, run by run, in constant memory. */
export function exportLedger(
  context: CommandContext,
  { ledger: ledgerPath, run }: ExportOptions,
): Promise<ExitCode> {
  const place = { programName: context.programName, ledgerPath }
  return withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = run === undefined ? undefined : await findRun(ledger, run, place)
    for await (const line of exportEvents(ledger, runId)) await context.print(`${line}\n`)
    return exitCodes.ok
  })
}
