import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import type { CommandContext } from '../../command/command-context.ts'
import { eventText } from '../../view/run/event-text.ts'
import { prettyJson } from '../../view/text/pretty-json.ts'
import { timeText } from '../../view/text/time-text.ts'

const maxHeadCharacters = 120

/** `show --event`: one event whole, over lines under a line that says what it is; with `--json` on one line. */
export async function showEvent(
  { json, paint, print }: CommandContext,
  ledger: Ledger,
  { runId, seq }: { readonly runId: RunId; readonly seq: number },
): Promise<void> {
  for await (const event of ledger.read(runId, { fromSeq: seq, toSeq: seq })) {
    if (json) await print(`${JSON.stringify(event)}\n`)
    else await print(`${paint('bold', headOf(event))}\n${prettyJson(JSON.parse(JSON.stringify(event)))}\n`)
  }
}

function headOf(event: RuntimeEvent): string {
  return `event ${event.seq}, ${timeText(event.at)}: ${eventText(event, maxHeadCharacters)}`
}
