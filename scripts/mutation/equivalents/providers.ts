import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/providers` that change nothing observable. */
export const providersEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/providers/src/openai-responses/request/rendered-message.ts',
    within: 'placeToGoOn',
    operator: 'method',
    original: 'find',
    becomes: 'findLast',
    why: 'Every part of a reply remembers the same place: that of its response.',
  },
]
