import type { ListedVerb } from '../../command/declare-verb.ts'

/** What looks at runs over time, and beside each other. */
export const watchVerbs: readonly ListedVerb[] = [
  {
    name: 'tail',
    summary: 'follow a run live, or all of them, whichever process drives them',
    load: () => import('./tail.ts'),
  },
  { name: 'diff', summary: 'show where two runs part, side by side', load: () => import('./diff.ts') },
  {
    name: 'stats',
    summary: 'tell what waits, what failed and why, and what it cost',
    load: () => import('./stats.ts'),
  },
]
