import type { ListedVerb } from '../../command/declare-verb.ts'

/** What looks at runs over time, and beside each other. */
export const watchVerbs: readonly ListedVerb[] = [
  {
    name: 'tail',
    summary: 'follow a run live, or all of them, whichever process drives them',
    example: 'tallystick tail runs.db latest',
    load: () => import('./tail.ts'),
  },
  {
    name: 'diff',
    summary: 'show where two runs part, side by side',
    example: 'tallystick diff runs.db latest 5f2c91',
    load: () => import('./diff.ts'),
  },
  {
    name: 'stats',
    summary: 'tell what waits, what failed and why, and what it cost',
    example: 'tallystick stats runs.db --days 30 --by day',
    load: () => import('./stats.ts'),
  },
]
