import type { CommandContext } from '../command-context.ts'
import { countEvents } from '../count-events.ts'
import { exitCodes, type ExitCode } from '../exit-code.ts'
import { shownLedger } from '../ledger-place.ts'
import { withLedger } from '../open-ledger.ts'
import { counted } from '../view/run-ending.ts'

/** `upgrade`: brings a ledger that an older release made to the schema of this one. One that is there already stays as it is. */
export function upgrade({ json, print }: CommandContext, place: string): Promise<ExitCode> {
  return withLedger(place, 'write', async (ledger) => {
    const events = await countEvents(ledger)
    const shown = shownLedger(place)
    await print(
      json
        ? `${JSON.stringify({ ledger: shown, events })}\n`
        : `${shown} is up to date: ${counted(events, 'event')}\n`,
    )
    return exitCodes.ok
  })
}
