import type { Equivalent } from '../equivalent.ts'

/** Mutants of the runtime that change nothing observable. */
export const runtimeEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/core/src/runtime/drive/run-hooks.ts',
    within: 'callHooks',
    operator: 'statement',
    original: 'if (caller.hooks.length === 0) return',
    becomes: ';',
    why: 'It only spares looking at the events: without hooks none is called.',
  },
  {
    path: 'packages/core/src/runtime/children/child-runs.ts',
    within: 'callAwaitingChild',
    operator: 'method',
    original: 'find',
    becomes: 'findLast',
    why: 'The id of a child run is derived from its call, so that no two calls of a run have the same.',
  },
]
