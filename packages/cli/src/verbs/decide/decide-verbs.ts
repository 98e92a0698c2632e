import type { ListedVerb } from '../../command/declare-verb.ts'

/** What leaves a command for the process that drives a run. */
export const decideVerbs: readonly ListedVerb[] = [
  { name: 'approve', summary: 'approve a tool call that waits for it', load: () => import('./approve.ts') },
  { name: 'deny', summary: 'deny a tool call that waits for an approval', load: () => import('./deny.ts') },
  {
    name: 'settle',
    summary: 'give the result of a tool call that an outside system carries out',
    load: () => import('./settle.ts'),
  },
  {
    name: 'raise',
    summary: 'raise a limit of a run, such as one that it is suspended at',
    load: () => import('./raise.ts'),
  },
  { name: 'cancel', summary: 'ask a run to stop', load: () => import('./cancel.ts') },
]
