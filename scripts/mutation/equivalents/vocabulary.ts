import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/core/src/vocabulary` that change nothing observable. */
export const vocabularyEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/core/src/vocabulary/values/json.ts',
    within: 'keyText',
    operator: 'statement',
    original: 'if (known !== undefined) return known',
    becomes: ';',
    why: 'It only spares work: a key that is kept is written as it was the first time.',
  },
  {
    path: 'packages/core/src/vocabulary/values/deep-freeze.ts',
    within: 'freezeOwn',
    operator: 'logical',
    original: '!isKept && Object.hasOwn(fields, key)',
    becomes: '(Object.hasOwn(fields, key))',
    why: 'It only spares a call for fields that are kept as they are.',
  },
  {
    path: 'packages/core/src/vocabulary/values/json.ts',
    within: 'writeObject',
    operator: 'literal',
    original: '1',
    becomes: '2',
    why: 'With a field in it the text has five characters at least.',
  },
  {
    path: 'packages/core/src/vocabulary/values/json.ts',
    within: '',
    operator: 'literal',
    original: '1_000',
    becomes: '1001',
    why: 'How many keys are kept as text: a key that is not kept is written the same.',
  },
  {
    path: 'packages/core/src/vocabulary/values/json.ts',
    within: '',
    operator: 'literal',
    original: '40',
    becomes: '41',
    why: 'How long a key is that is kept as text: a longer one is written the same.',
  },
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
