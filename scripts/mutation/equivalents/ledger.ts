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
  {
    path: 'packages/ledger/src/record/several/segment-commitments.ts',
    within: '',
    operator: 'arithmetic',
    original: '*',
    becomes: '/',
    why: 'What does not fit into the scratch buffer is laid together in one of its own, as the same bytes.',
  },
  {
    path: 'packages/ledger/src/record/several/segment-commitments.ts',
    within: '',
    operator: 'literal',
    original: '64',
    becomes: '65',
    why: 'What does not fit into the scratch buffer is laid together in one of its own, as the same bytes.',
  },
  {
    path: 'packages/ledger/src/record/several/segment-commitments.ts',
    within: '',
    operator: 'literal',
    original: '1024',
    becomes: '1025',
    why: 'What does not fit into the scratch buffer is laid together in one of its own, as the same bytes.',
  },
  {
    path: 'packages/ledger/src/verify/totals-audit.ts',
    within: 'totalsFault',
    operator: 'logical',
    original: 'found === undefined || (await tables.state()).revision === revision',
    becomes: '((await tables.state()).revision === revision)',
    why: 'It only spares another audit of a ledger that has changed meanwhile, which would find sound totals sound again.',
  },
]
