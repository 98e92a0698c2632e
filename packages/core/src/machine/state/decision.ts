import type { Fact } from '../../vocabulary/events/event.ts'

/** The time and the random number of a decision, passed in so that the same input gives the same events. */
export interface Stamp {
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  /** From 0 (included) to 1 (excluded). */
  readonly random: number
}

/** Why a command is refused. A value, not an error. */
export interface Refusal {
  readonly code:
    | 'run_finished'
    | 'unknown_call'
    | 'not_awaiting_approval'
    | 'approval_expired'
    | 'not_deferred'
    | 'not_raised'
    | 'already_cancelled'
    | 'cancelled'
    | 'not_supported'
    | 'malformed'
    | 'invalid_input'
    | 'run_exists'
    | 'drained'
  readonly message: string
}

/** The facts that follow; none, when the message changes nothing. */
export type Decision = { readonly facts: readonly Fact[] } | { readonly refused: Refusal }

/** The message changes nothing. */
export const nothing: Decision = { facts: [] }

/** The refusal of a command, as a decision. */
export function refusal(code: Refusal['code'], message: string): { readonly refused: Refusal } {
  return { refused: { code, message } }
}

/** What the refusal of a command to a run that is done says, after its status. */
export function finishedText(status: string): string {
  return `${status}; nothing can be asked of it any more. To continue, start a new run, of its session if it has one, or fork this one.`
}
