import { rebuildProjections } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import { countEvents } from '../../ledger/count-events.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { exitCodes } from '../../command/exit-code.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { withProgress } from '../../view/text/progress.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'

/** Declares what `rebuild` takes. */
export function declareRebuild(verb: Command, context: CommandContext, done: Done): void {
  onLedger(
    verb,
    'make again what is derived from the events: projections for list and stats, and snapshots',
  ).action(async (ledger: string) => {
    done(await rebuild(context, ledger))
  })
}

/**
 * `rebuild`: drops what a ledger keeps beside its events, snapshots and projections, and makes the projections of runs,
 * sessions and totals anew. Runs that are under way continue meanwhile.
 */
export function rebuild(context: CommandContext, ledgerPath: string): Promise<ExitCode> {
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const { runs, events } = await withProgress(
      context,
      () => countEvents(ledger),
      ({ add }) => rebuildProjections(ledger, add),
    )
    const text = `rebuilt from ${counted(events, 'event')} of ${counted(runs, 'run')}`
    await context.print(context.json ? `${JSON.stringify({ runs, events })}\n` : `${text}\n`)
    return exitCodes.ok
  })
}
