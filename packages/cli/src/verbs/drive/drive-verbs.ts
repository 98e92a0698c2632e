import type { ListedVerb } from '../../command/declare-verb.ts'

/** What drives runs, with the agents of a configuration. */
export const driveVerbs: readonly ListedVerb[] = [
  {
    name: 'run',
    summary: 'start a run of one of your agents, and show it live',
    load: () => import('./run.ts'),
  },
  {
    name: 'resume',
    summary: 'take a run further: after a decision, a stop or a crash',
    load: () => import('./resume.ts'),
  },
  {
    name: 'fork',
    summary: 'start a run that shares the first events of another',
    load: () => import('./fork.ts'),
  },
]
