import type { CommandContext } from '../../command/command-context.ts'
import { countEvents } from '../../ledger/count-events.ts'
import { exitCodes, type ExitCode } from '../../command/exit-code.ts'
import { shownLedger } from '../../command/ledger-place.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger, type Done, type VerbHelp } from '../../command/declare-verb.ts'

/** How the help lists it. */
export const listed: VerbHelp = {
  summary: 'bring a ledger of an older release up to date',
  example: 'tallystick upgrade runs.db',
}

/** Declares what `upgrade` takes. */
export function declareVerb(verb: Command, context: CommandContext, done: Done): void {
  onLedger(
    verb,
    'bring a ledger of an older release up to date; older releases cannot use it afterwards',
  ).action(async (ledger: string) => {
    done(await upgrade(context, ledger))
  })
}

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
