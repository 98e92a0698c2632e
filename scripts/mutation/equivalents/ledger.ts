import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/ledger` beside SQLite that change nothing observable. */
export const ledgerEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/ledger/src/content/event/stored-body.ts',
    within: 'withoutLarge',
    operator: 'comparison',
    original: '<',
    becomes: '<=',
    why: 'Three times a length is never 16 KiB, which is no multiple of three.',
  },
]
