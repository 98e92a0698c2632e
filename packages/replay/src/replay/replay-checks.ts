import { type RuntimeEvent } from '@tallystick/core'
import { type ToolInputGuardrail } from '@tallystick/core/kit'
import { type EventOf, type JsonObject, type ToolCallId } from '@tallystick/core/vocabulary'

type Trip = EventOf<'guardrail_tripped'>

/** Returns guardrails that repeat the recorded verdict on each call: a replay runs no guardrail again. */
export function recordedCallGuardrails(
  recorded: readonly RuntimeEvent[],
  from: number,
): readonly ToolInputGuardrail[] {
  const { trips, collected } = checkedAt(recorded, from)
  const inputs = new Map(collected?.calls.map(({ toolCallId, input }) => [toolCallId, input]))
  return trips.map((trip): ToolInputGuardrail => ({
    name: trip.guardrail,
    on: 'tool_input',
    check: ({ toolCallId }) => {
      if (trip.toolCallId !== toolCallId) return 'pass'
      return verdictOf(trip, inputs.get(toolCallId))
    },
  }))
}

/** Which results on record of another run answered the calls of a fork then. */
export function recordedAnswers(
  recorded: readonly RuntimeEvent[],
  from: number,
): (calls: readonly { readonly toolCallId: ToolCallId }[]) => readonly (ToolCallId | undefined)[] {
  const { collected } = checkedAt(recorded, from)
  const answers = new Map(collected?.calls.map((call) => [call.toolCallId, call.recorded]))
  return (calls) => calls.map(({ toolCallId }) => answers.get(toolCallId))
}

/** What a check of a reply's calls put on record: what guardrails found, then what becomes of the calls. */
export function checkedAt(
  recorded: readonly RuntimeEvent[],
  from: number,
): { readonly trips: readonly Trip[]; readonly collected?: EventOf<'tool_requests_collected'> } {
  const trips: Trip[] = []
  for (let index = from; index < recorded.length; index++) {
    const event = recorded[index] as RuntimeEvent
    if (event.type === 'tool_requests_collected') return { trips, collected: event }
    if (event.type !== 'guardrail_tripped') break
    trips.push(event)
  }
  return { trips }
}

function verdictOf(
  { action, detail = '' }: Trip,
  input: JsonObject | undefined,
): Awaited<ReturnType<ToolInputGuardrail['check']>> {
  switch (action) {
    case 'block':
      return { block: detail }
    case 'record':
      return { record: detail }
    case 'replace':
      return { replace: input ?? {}, ...(detail !== '' && { why: detail }) }
  }
}
