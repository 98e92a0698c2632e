import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/tools` that change nothing observable. */
export const toolsEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/tools/src/built-in/http-fetch/exchange.ts',
    within: 'nextHop',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'A status of 303 never comes here: the other branch has it.',
  },
]
