import type { Equivalent } from '../equivalent.ts'

/** Mutants of the runtime that change nothing observable. */
export const runtimeEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/core/src/runtime/children/child-runs.ts',
    within: 'callAwaitingChild',
    operator: 'method',
    original: 'find',
    becomes: 'findLast',
    why: 'The id of a child run is derived from its call, so that no two calls of a run have the same.',
  },
]
