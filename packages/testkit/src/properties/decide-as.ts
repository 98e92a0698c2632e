import type { PendingApproval } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { SimulatedDecision } from '../simulation/simulate.ts'
import type { People } from './random-trouble.ts'

/** Longer than random limits give a person to decide, in milliseconds. */
const LATE_MS = 25

/**
 * Answers the first, the second … approval as the list says, and approves the others. `edit` returns the input that a person puts
 * in place of the model's.
 */
export function decideAs(
  decisions: People['decisions'],
  edit: (pending: PendingApproval) => JsonObject,
): (pending: PendingApproval) => SimulatedDecision {
  let decided = 0
  return (pending) => {
    switch (decisions[decided++] ?? 'approve') {
      case 'deny':
        return { approve: false, reason: 'not today' }
      case 'edit':
        return { approve: true, input: edit(pending) }
      case 'stand':
        return {
          approve: true,
          standing: { for: decided % 2 ? 'session' : 'equal_input', expiresInMs: 40 * decided },
        }
      case 'late':
        return { approve: true, afterMs: LATE_MS }
      case 'approve':
        return { approve: true }
    }
  }
}
