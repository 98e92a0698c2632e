import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/ledger` beside its rows and SQLite that change nothing observable. */
export const ledgerEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/ledger/src/verify/totals-audit.ts',
    within: 'totalsFault',
    operator: 'logical',
    original: 'found === undefined || (await tables.state()).revision === revision',
    becomes: '((await tables.state()).revision === revision)',
    why: 'It only spares another audit of a ledger that has changed meanwhile, which would find sound totals sound again.',
  },
]
