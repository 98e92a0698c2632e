import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/replay` that change nothing observable. */
export const replayEquivalents: readonly Equivalent[] = [
  ...[0, 1].map((occurrence) => ({
    path: 'packages/replay/src/replay/replay-causes.ts',
    within: 'stampAt',
    ...{ operator: 'literal', original: '0', becomes: '1', occurrence },
    why: 'No decision uses chance but that of an attempt that failed.',
  })),
  ...[1, 2].map((occurrence) => ({
    path: 'packages/replay/src/regression/secret-mask.ts',
    within: 'maskedBy',
    ...{ operator: 'literal', original: '0', becomes: '1', occurrence },
    why: 'Each pattern is made with the flag by which every match has its indices.',
  })),
  ...(
    [
      ['element', 'toSeq: 1', ''],
      ['literal', '1', '2'],
    ] as const
  ).map(([operator, original, becomes]) => ({
    path: 'packages/replay/src/regression/replay-regression.ts',
    ...{ within: 'replayRegression', operator, original, becomes },
    why: 'Only the first event is taken: the bound spares the ledger the others.',
  })),
]
