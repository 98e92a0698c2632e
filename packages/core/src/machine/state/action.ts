import type { Fact } from '../../vocabulary/events/event.ts'

/**
 * The next action of a run. `facts` are recorded first, in one append; then the controller is asked again, until it answers
 * with an action that has none:
 * - `wait`: something is in flight (`requiredEffects` says what), or a time has to come (`wakeAt`, milliseconds since 1970)
 * - `suspend`: nothing is in flight, and only a command can continue the run
 * - `finished`: the run is done
 */
export type Action =
  | { readonly kind: RecordingKind; readonly facts: readonly Fact[] }
  | { readonly kind: 'wait'; readonly wakeAt?: number }
  | { readonly kind: 'suspend' }
  | { readonly kind: 'finished' }

/** What the facts of an action start or settle. */
export type RecordingKind =
  | 'call_model'
  | 'deliver_input'
  | 'compact'
  | 'hand_off'
  | 'keep_partial'
  | 'meet_limit'
  | 'collect'
  | 'settle_calls'
  | 'ask_approval'
  | 'run_tools'
  | 'inject'
  | 'finish'
