import { type Ledger, type RunState } from '@tallystick/core'
import { runTimes } from '@tallystick/core/machine'
import { eventTypes, type EventOf } from '@tallystick/core/vocabulary'
import type { CommandContext } from '../../command/command-context.ts'
import { eventsOf } from '../../runs/read-run.ts'
import { durationText } from '../../view/text/duration-text.ts'
import { eventText, isOfInterest } from '../../view/run/event-text.ts'

const maxEventCharacters = 120

/** `show --events`: a line for each event that says something of its own, under its number and its time in the run. */
export async function showEvents(
  { print }: Pick<CommandContext, 'print'>,
  ledger: Ledger,
  {
    state,
    toSeq,
    turn,
  }: { readonly state: RunState; readonly toSeq?: number | undefined; readonly turn?: number | undefined },
): Promise<void> {
  const types = eventTypes.filter((type) => isOfInterest({ type }) || type === 'tool_results_injected')
  const width = `${state.seq}`.length
  const { startedAt } = runTimes(state)
  let called: EventOf<'model_call_started'> | undefined
  for await (const event of eventsOf(ledger, state.runId, types, { toSeq, turn })) {
    if (event.type === 'model_call_started') called = event
    const isReply = event.type === 'assistant_message_finished' || event.type === 'model_stream_failed'
    const tookMs =
      isReply && called ? event.at - called.at : 'durationMs' in event ? event.durationMs : undefined
    const took = tookMs === undefined ? '' : `  took ${durationText(tookMs)}`
    const place = event.turn === 0 ? '' : `turn ${event.turn}`
    const since = `+${durationText(Math.max(0, event.at - startedAt))}`
    const what = eventText(event, maxEventCharacters)
    await print(
      `${`${event.seq}`.padStart(width)}  ${since.padEnd(12)}  ${place.padEnd(8)}  ${what}${took}\n`,
    )
  }
}
