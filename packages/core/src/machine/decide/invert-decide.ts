import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import type { RecordedPosition } from './recorded-position.ts'
import { isCheckCause, invertCheckSignal } from './invert-check-signal.ts'
import { invertCommand, isCommandCause } from './invert-command.ts'
import { invertModelSignal, isModelCause } from './invert-model-signal.ts'
import { invertToolSignal, isToolCause } from './invert-tool-signal.ts'
import type { RunState } from '../state/state.ts'
import { causeOf } from '../../vocabulary/events/usual-cause.ts'

/**
 * The inverse of `decide`: what the machine heard in a state, made again from the events that followed. `undefined` where
 * it heard nothing (`causeOf` says `controller`), where the record ends within the decision, and for `calls_checked`:
 * whether calls may run is asked of the agent.
 */
export function invertDecide(
  state: RunState | undefined,
  place: RecordedPosition,
): Command | Signal | undefined {
  const event = place.recorded[place.index]
  if (event === undefined) return undefined
  const cause = causeOf(event)
  if (isCommandCause(cause)) return invertCommand(state, cause, place)
  if (state === undefined) return undefined
  if (isModelCause(cause)) return invertModelSignal(state, cause, place)
  if (isToolCause(cause)) return invertToolSignal(state, cause, event)
  return isCheckCause(cause) ? invertCheckSignal(state, cause, place) : undefined
}
