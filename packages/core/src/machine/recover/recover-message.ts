import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import type { RecordedPosition } from '../decide/recorded-position.ts'
import { isCheckCause, recoverCheckSignal } from './recover-check-signal.ts'
import { isOutsideCause, rulesOfCommand } from '../decide/outside-commands.ts'
import { recoverModelSignal, isModelCause } from './recover-model-signal.ts'
import { recoverToolSignal, isToolCause } from './recover-tool-signal.ts'
import type { RunState } from '../state/state.ts'
import { recoverResume, recoverStart } from '../decide/runtime-commands.ts'
import { causeOf } from '../../vocabulary/events/event-traits.ts'

/**
 * The inverse of `decide`: returns the command or signal that the machine received in a state, made again from the events
 * that followed. `undefined` where it received none (`causeOf` says `controller`), where the record ends within the
 * decision, and for `calls_checked`: whether calls may run is asked of the agent.
 */
export function recoverMessage(
  state: RunState | undefined,
  position: RecordedPosition,
): Command | Signal | undefined {
  const event = position.recorded[position.index]
  if (event === undefined) return undefined
  const cause = causeOf(event)
  if (cause === 'start') return recoverStart(position)
  if (cause === 'resume') return recoverResume(event, state?.definition)
  if (isOutsideCause(cause)) return rulesOfCommand(cause).recover(event)
  if (state === undefined) return undefined
  if (isModelCause(cause)) return recoverModelSignal(state, cause, position)
  if (isToolCause(cause)) return recoverToolSignal(state, cause, event)
  return isCheckCause(cause) ? recoverCheckSignal(state, cause, position) : undefined
}
