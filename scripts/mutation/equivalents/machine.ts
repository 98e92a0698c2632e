import type { Equivalent } from '../equivalent.ts'

/** Mutants of the machine that change nothing observable. */
export const machineEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/core/src/machine/state/required-effects.ts',
    within: 'requiresEffects',
    operator: 'logical',
    original:
      "(state.phase === 'executing' && summaryOf(state.calls).counts.started > 0) || requiredEffects(state).length > 0",
    becomes: '(requiredEffects(state).length > 0)',
    why: 'Each started call requires an effect: the count only spares making all of them.',
  },
  {
    path: 'packages/core/src/machine/state/required-effects.ts',
    within: 'requiresEffects',
    operator: 'literal',
    original: '0',
    becomes: '1',
    why: 'Each started call requires an effect: the count only spares making all of them.',
  },
  {
    path: 'packages/core/src/machine/next/next-action.ts',
    within: 'mayBeSuspended',
    operator: 'logical',
    original: 'isHeld && !hasPendingHandoff && !requiresEffects(state)',
    becomes: '(isHeld && !hasPendingHandoff)',
    why: 'It only spares the answer of the controller, which is to wait where an effect is required.',
  },
  {
    path: 'packages/core/src/machine/next/next-action.ts',
    within: 'mayBeSuspended',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'It only spares the answer of the controller, which is to inject the results where all are there, or to wait for their check.',
  },
]
