import type { ListedVerb } from '../../command/declare-verb.ts'

/** What drives runs, with the agents of a configuration. */
export const driveVerbs: readonly ListedVerb[] = [
  {
    name: 'run',
    summary: 'start a run of one of your agents, and show it live',
    example: `tallystick run runs.db assistant 'How warm is it in Seoul?' --session ann`,
    load: () => import('./run.ts'),
  },
  {
    name: 'resume',
    summary: 'take a run further: after a decision, a stop or a crash',
    example: 'tallystick resume runs.db latest --yes --by ann',
    load: () => import('./resume.ts'),
  },
  {
    name: 'fork',
    summary: 'start a run that shares the first events of another',
    example: `tallystick fork runs.db latest --input 'Order two.' --reason 'what if'`,
    load: () => import('./fork.ts'),
  },
  {
    name: 'serve',
    summary: 'serve the runs of a ledger over HTTP, and take up those that no process drives',
    example: 'tallystick serve runs.db --port 8080',
    load: () => import('./serve.ts'),
  },
]
