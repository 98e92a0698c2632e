import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/cli` that change nothing observable. */
export const cliEquivalents: readonly Equivalent[] = [
  ...(
    [
      ['element', 'limit: 1', ''],
      ['literal', '1', '2'],
    ] as const
  ).map(([operator, original, becomes]) => ({
    path: 'packages/cli/src/ledger/with-summaries.ts',
    within: 'withWritable',
    ...{ operator, original, becomes },
    why: 'Only the first run is read: the limit spares the store the others.',
  })),
  {
    path: 'packages/cli/src/verbs/drive/fork.ts',
    within: 'forkOptions',
    operator: 'comparison',
    original: '>=',
    becomes: '>',
    why: 'At the first event there is no history: the runtime refuses the fork before it looks at its edits.',
  },
]
