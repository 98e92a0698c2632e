import type { Equivalent } from '../equivalent.ts'

/** Mutants of the machine that change nothing observable. */
export const machineEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/core/src/machine/next/next-action.ts',
    within: 'mayBeSuspended',
    operator: 'logical',
    original: 'isHeld && !hasPendingHandoff && !requiresEffects(state)',
    becomes: '(isHeld && !hasPendingHandoff)',
    why: 'It only spares the answer of the controller, which is to wait where an effect is required.',
  },
]
