import { concatMap, takeUntil } from 'rxjs'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { watchLedger } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { exitCodes } from '../../command/exit-code.ts'
import { completed, handleAll, untilStopped } from '../../terminal/until-stopped.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { ledgerPrinter } from '../../view/list/ledger-printer.ts'

/** What `tail` of a ledger was given. */
export interface TailAllOptions {
  readonly ledger: string
  /** A cursor that it printed; the first event shown is the next one. Default: the first event. */
  readonly after?: TailCursor
}

/**
 * `tail` of a ledger: shows the events of every run that are there, and then those that come, whichever process drives
 * them, until Ctrl-C. With `--json` an event and its cursor a line.
 */
export function tailAll(
  context: CommandContext,
  { ledger: place, after }: TailAllOptions,
): Promise<ExitCode> {
  const { json, print, view } = context
  const show = ledgerPrinter(view)
  let last = after
  const handle = async (tailed: TailedEvent): Promise<void> => {
    if (json) await print(`${JSON.stringify(tailed)}\n`)
    else show(tailed.event)
    last = tailed.cursor
  }
  return untilStopped((stop$) =>
    withLedger(place, 'read', async (ledger) => {
      // Only what comes is pushed.
      const isWanted = await handleAll(ledger.tail(after), handle, stop$)
      if (isWanted) await completed(watchLedger(ledger, last).pipe(concatMap(handle), takeUntil(stop$)))
      return exitCodes.ok
    }),
  )
}
