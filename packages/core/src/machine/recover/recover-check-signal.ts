import type { Cause } from '../../vocabulary/events/cause.ts'
import type { EventOf } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { GuardrailFind, Signal } from '../../vocabulary/signals/signal.ts'
import { summaryTextOf } from '../prompt/compaction.ts'
import type { RecordedPosition } from '../decide/recorded-position.ts'
import type { RunState } from '../state/state.ts'

type CheckCause = 'guardrails_checked' | 'output_checked' | 'summarized'

/** Whether guardrails, a schema or a summing-up model decided it. */
export function isCheckCause(cause: Cause): cause is CheckCause {
  return cause === 'guardrails_checked' || cause === 'output_checked' || cause === 'summarized'
}

/** What guardrails, a schema or a summing-up model said that decided the events at a place. */
export function recoverCheckSignal(
  state: RunState,
  cause: CheckCause,
  place: RecordedPosition,
): Signal | undefined {
  const event = place.recorded[place.index]
  switch (cause) {
    case 'guardrails_checked':
      return guardrailsOf(state, place)
    case 'output_checked': {
      if (event?.type !== 'output_checked') return undefined
      const { valid, output = null, error = '', turn } = event
      const verdict = valid ? ({ valid, output } as const) : ({ valid, error } as const)
      return { type: cause, turn, verdict }
    }
    case 'summarized': {
      if (event?.type !== 'context_compacted') return undefined
      const { summary, usage, failure, turn } = event
      const answer = failure ? { failure } : { text: summaryTextOf(summary) }
      return { type: cause, turn, answer, ...omitUndefined({ usage }) }
    }
  }
}

/** The findings of guardrails come before the fact that they have checked. */
function guardrailsOf(state: RunState, { recorded, index }: RecordedPosition): Signal | undefined {
  const finds: GuardrailFind[] = []
  for (let at = index; at < recorded.length; at++) {
    const event = recorded[at]
    if (event?.type === 'guardrail_tripped') {
      finds.push(findOf(event))
      continue
    }
    if (event?.type !== 'guardrails_checked' || event.on === 'tool_input') return undefined
    const { on, guardrails } = event
    const seen = on === 'input' ? (state.inputCheck?.seq ?? 0) : state.turn
    return { type: 'guardrails_checked', on, place: seen, guardrails, finds }
  }
  return undefined
}

function findOf(trip: EventOf<'guardrail_tripped'>): GuardrailFind {
  const { guardrail, action, detail, index, toolCallId, replacement } = trip
  return { guardrail, action, ...omitUndefined({ detail, index, toolCallId, replacement }) }
}
