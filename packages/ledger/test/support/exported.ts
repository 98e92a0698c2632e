import type { Ledger, RunId } from '@tallystick/core'
import { exportEvents } from '@tallystick/ledger'

/** The lines of a ledger, or of one of its runs. */
export function linesOfLedger(ledger: Ledger, runId?: RunId): Promise<string[]> {
  return Array.fromAsync(exportEvents(ledger, runId))
}
