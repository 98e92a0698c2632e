import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import type { RecordedPosition } from './recorded-position.ts'
import { isCheckCause, recoverCheckSignal } from './recover-check-signal.ts'
import { recoverCommand, isCommandCause } from './recover-command.ts'
import { recoverModelSignal, isModelCause } from './recover-model-signal.ts'
import { recoverToolSignal, isToolCause } from './recover-tool-signal.ts'
import type { RunState } from '../state/state.ts'
import { causeOf } from '../../vocabulary/events/event-traits.ts'

/**
 * The inverse of `decide`: what the machine heard in a state, made again from the events that followed. `undefined` where
 * it heard nothing (`causeOf` says `controller`), where the record ends within the decision, and for `calls_checked`:
 * whether calls may run is asked of the agent.
 */
export function recoverMessage(
  state: RunState | undefined,
  place: RecordedPosition,
): Command | Signal | undefined {
  const event = place.recorded[place.index]
  if (event === undefined) return undefined
  const cause = causeOf(event)
  if (isCommandCause(cause)) return recoverCommand(state, cause, place)
  if (state === undefined) return undefined
  if (isModelCause(cause)) return recoverModelSignal(state, cause, place)
  if (isToolCause(cause)) return recoverToolSignal(state, cause, event)
  return isCheckCause(cause) ? recoverCheckSignal(state, cause, place) : undefined
}
