import type { Equivalent } from '../equivalent.ts'

/** Mutants of `packages/ledger/src/sqlite` that change nothing observable. */
export const sqliteEquivalents: readonly Equivalent[] = [
  {
    path: 'packages/ledger/src/sqlite/rows/search.ts',
    within: '#turnOf',
    operator: 'literal',
    original: '1',
    becomes: '2',
    occurrence: 1,
    why: 'The query asks for the turn as well: an event before the first of the turn is looked at, and left out.',
  },
  {
    path: 'packages/ledger/src/sqlite/rows/search.ts',
    within: '#turnOf',
    operator: 'arithmetic',
    original: '-',
    becomes: '+',
    occurrence: 1,
    why: 'The query asks for the turn as well: events after the last of the turn are looked at, and left out.',
  },
  {
    path: 'packages/ledger/src/sqlite/write/append.ts',
    within: 'isTaken',
    operator: 'literal',
    original: '1',
    becomes: '2',
    occurrence: 1,
    why: 'Of the rows of the query only the first is taken.',
  },
  {
    path: 'packages/ledger/src/sqlite/sqlite-keyring.ts',
    within: 'opened',
    operator: 'statement',
    original: "database.pragma('synchronous = full')",
    becomes: ';',
    why: 'It is the default of SQLite, and the promise of an erasure: a build with another default keeps it, too.',
  },
  {
    path: 'packages/ledger/src/sqlite/write/transactions.ts',
    within: '#within',
    operator: 'statement',
    original: 'this.#release.run()',
    becomes: ';',
    why: 'A commit releases the savepoints that are left. Until then each of them costs memory.',
  },
]
