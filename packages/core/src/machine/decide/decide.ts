import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { decideCommand } from './decide-command.ts'
import { decideCheckSignal, isCheckSignal } from './decide-check-signal.ts'
import { decideModelSignal, isModelSignal } from './decide-model-signal.ts'
import { decideToolSignal, isToolSignal } from './decide-tool-signal.ts'
import type { Decision, Stamp } from '../state/decision.ts'
import type { RunState } from '../state/state.ts'

/**
 * What follows from a command or a signal in a state. Pure: the only way from the outside into the ledger. A signal
 * that comes too late, from an attempt or a call that has ended, gives no facts.
 */
export function decide(state: RunState | undefined, message: Command | Signal, stamp: Stamp): Decision {
  if (state === undefined) return decideCommand(undefined, message as Command, stamp.at)
  if (isCheckSignal(message)) return decideCheckSignal(state, message)
  if (isModelSignal(message)) return decideModelSignal(state, message, stamp)
  return isToolSignal(message)
    ? decideToolSignal(state, message, stamp.at)
    : decideCommand(state, message, stamp.at)
}
