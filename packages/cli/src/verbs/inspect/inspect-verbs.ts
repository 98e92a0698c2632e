import type { ListedVerb } from '../../command/declare-verb.ts'

/** What looks at the runs of a ledger. */
export const inspectVerbs: readonly ListedVerb[] = [
  {
    name: 'list',
    summary: 'list the runs, the newest first',
    example: 'tallystick list runs.db --status suspended --since 3d',
    load: () => import('./list.ts'),
  },
  {
    name: 'find',
    summary: 'find calls, and what was said, in all runs',
    example: `tallystick find runs.db --tool pay --outcome success --input usd=5`,
    load: () => import('./find.ts'),
  },
  {
    name: 'show',
    summary: 'show the state of a run, and what happened in it',
    example: 'tallystick show runs.db latest --at 12',
    load: () => import('./show.ts'),
  },
  {
    name: 'explain',
    summary: 'show where the request of a turn came from, part by part',
    example: 'tallystick explain runs.db latest 2',
    load: () => import('./explain.ts'),
  },
]
