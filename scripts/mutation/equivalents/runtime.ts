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
  {
    path: 'packages/core/src/runtime/output/output-transform.ts',
    within: 'write',
    operator: 'arithmetic',
    original: 'max',
    becomes: 'min',
    why: 'The search for the end of a unit begins earlier, in text that has none: it only takes longer.',
  },
  {
    path: 'packages/core/src/runtime/output/output-transform.ts',
    within: 'endOfSentence',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'Behind the last character of a text is none, and none ends a sentence.',
  },
  {
    path: 'packages/core/src/runtime/output/output-transform.ts',
    within: 'wholeCharacters',
    operator: 'comparison',
    original: '>=',
    becomes: '>',
    why: 'Behind the last character of a text is no second half of one.',
  },
  {
    path: 'packages/core/src/runtime/session/run-ids.ts',
    within: 'hex',
    operator: 'literal',
    original: '16',
    becomes: '17',
    occurrence: 1,
    why: 'The numbers are below 16, and have the same digit in both bases.',
  },
  {
    path: 'packages/core/src/runtime/session/run-ids.ts',
    within: 'runIdMaker',
    operator: 'literal',
    original: '1',
    becomes: '2',
    why: 'The clock of a host answers no time before 1970, so the first time is later than both.',
  },
]
