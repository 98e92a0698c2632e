import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/core/src/vocabulary` that change nothing observable. */
export const vocabularyEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/core/src/vocabulary/values/child-run-id.ts',
    within: 'childRunIdOf',
    operator: 'literal',
    original: '16',
    becomes: '17',
    why: 'One hexadecimal digit has the same value to either base.',
  },
  {
    path: 'packages/core/src/vocabulary/options/nearest-name.ts',
    within: 'edits',
    operator: 'literal',
    original: '1',
    becomes: '2',
    why: 'The first row may be longer than the name: what is beyond its end is never read.',
  },
]
