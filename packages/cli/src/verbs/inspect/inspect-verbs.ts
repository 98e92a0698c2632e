import type { ListedVerb } from '../../command/declare-verb.ts'

/** What looks at the runs of a ledger. */
export const inspectVerbs: readonly ListedVerb[] = [
  { name: 'list', summary: 'list the runs, the newest first', load: () => import('./list.ts') },
  { name: 'find', summary: 'find calls, and what was said, in all runs', load: () => import('./find.ts') },
  {
    name: 'show',
    summary: 'show the state of a run, and what happened in it',
    load: () => import('./show.ts'),
  },
  {
    name: 'explain',
    summary: 'show where the request of a turn came from, part by part',
    load: () => import('./explain.ts'),
  },
]
