import {
  present,
  type EventOf,
  type GuardrailFind,
  type JsonObject,
  type RunState,
  type RuntimeEvent,
  type Signal,
  type ToolInputGuardrail,
} from '@tallystick/core'

type Trip = EventOf<'guardrail_tripped'>

/** Whether an event is what a guardrail found in the input of a call: part of the check of a reply's calls. */
export function isCallTrip(event: RuntimeEvent): event is Trip {
  return event.type === 'guardrail_tripped' && event.on === 'tool_input'
}

/** What guardrails said of what went in or out, put together again: their finds, and the fact that closes them. */
export function guardrailCause(
  state: RunState,
  event: Trip | EventOf<'guardrails_checked'>,
  recorded: readonly RuntimeEvent[],
): Signal | undefined {
  const { on } = event
  if (on === 'tool_input') return undefined
  const place = on === 'input' ? (state.inputCheck?.seq ?? 0) : state.turn
  const finds: GuardrailFind[] = []
  for (const each of recorded.slice(event.seq - 1)) {
    if (each.type === 'guardrails_checked') {
      return { type: 'guardrails_checked', on, place, guardrails: each.guardrails, finds }
    }
    if (each.type !== 'guardrail_tripped') return undefined
    finds.push(findOf(each))
  }
  // The recording ends here: a run that is still under way.
  const guardrails = finds.map(({ guardrail }) => guardrail)
  return { type: 'guardrails_checked', on, place, guardrails, finds }
}

function findOf({ guardrail, action, detail, index, toolCallId, replacement }: Trip): GuardrailFind {
  return { guardrail, action, ...present({ detail, index, toolCallId, replacement }) }
}

/** Guardrails that say of each call again what those of then said: a replay asks nobody. */
export function recordedCallGuardrails(
  recorded: readonly RuntimeEvent[],
  from: RuntimeEvent,
): readonly ToolInputGuardrail[] {
  const rest = recorded.slice(from.seq - 1)
  const collected = rest.find((event) => event.type === 'tool_requests_collected')
  const trips = collected ? rest.slice(0, rest.indexOf(collected)) : rest
  const inputs = new Map(collected?.calls.map(({ toolCallId, input }) => [toolCallId, input]))
  return trips.filter(isCallTrip).map((trip): ToolInputGuardrail => ({
    name: trip.guardrail,
    on: 'tool_input',
    check: ({ toolCallId }) => {
      if (trip.toolCallId !== toolCallId) return 'pass'
      return saidBy(trip, inputs.get(toolCallId))
    },
  }))
}

function saidBy(
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

/** What the model that sums up answered; `undefined` where no model was asked. */
export function summaryCause(
  { compacting, turn }: RunState,
  { summary, usage, failure }: EventOf<'context_compacted'>,
): Signal | undefined {
  if (compacting === undefined) return undefined
  const [part] = summary.parts
  // Behind the words that introduce it; a summary that was left out has no second line.
  const [, ...lines] = part?.type === 'text' ? part.text.split('\n') : []
  const text = lines.join('\n')
  return { type: 'summarized', turn, answer: failure ? { failure } : { text }, ...present({ usage }) }
}
