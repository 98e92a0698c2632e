import type { Command } from '../../vocabulary/events/command.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { decideCheckSignal, isCheckSignal } from './decide-check-signal.ts'
import { decideModelSignal, isModelSignal } from './decide-model-signal.ts'
import { decideToolSignal, isToolSignal } from './decide-tool-signal.ts'
import { finishedText, refusal, type Decision, type Stamp } from '../state/decision.ts'
import type { RunState } from '../state/state.ts'
import { rulesOfCommand } from './outside-commands.ts'
import { decideResume, decideStart } from './runtime-commands.ts'

/**
 * Returns what follows from a command or a signal in a state; `undefined` is the state of a run that does not exist yet.
 * Pure: the only way from the outside into the ledger. A signal that comes too late, from an attempt or a call that has
 * ended, gives no facts.
 */
export function decide(state: RunState | undefined, message: Command | Signal, stamp: Stamp): Decision {
  if (message.type === 'start') return decideStart(state, message)
  if (state === undefined) return refusal('not_supported', 'The run does not exist yet; start it first.')
  if (isCheckSignal(message)) return decideCheckSignal(state, message)
  if (isModelSignal(message)) return decideModelSignal(state, message, stamp)
  if (isToolSignal(message)) return decideToolSignal(state, message, stamp)
  if (state.phase === 'done') {
    return refusal('run_finished', finishedText(`Run ${state.runId} is finished (${state.reason})`))
  }
  if (message.type === 'resume') return decideResume(state, message)
  return rulesOfCommand(message.type).decide(state, message, stamp.at)
}
