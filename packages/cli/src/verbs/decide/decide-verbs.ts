import type { ListedVerb } from '../../command/declare-verb.ts'

/** What leaves a command for the process that drives a run. */
export const decideVerbs: readonly ListedVerb[] = [
  {
    name: 'approve',
    summary: 'approve a tool call that waits for it',
    example: `tallystick approve runs.db latest 2_1_1 --by ann --input '{"quantity":12}'`,
    load: () => import('./approve.ts'),
  },
  {
    name: 'deny',
    summary: 'deny a tool call that waits for an approval',
    example: `tallystick deny runs.db latest 2_1_1 --by ann --reason 'twelve are enough'`,
    load: () => import('./deny.ts'),
  },
  {
    name: 'settle',
    summary: 'give the result of a tool call that an outside system carries out',
    example: `tallystick settle runs.db latest job-7 --result '12 rows'`,
    load: () => import('./settle.ts'),
  },
  {
    name: 'raise',
    summary: 'raise a limit of a run, such as one that it is suspended at',
    example: 'tallystick raise runs.db latest maxTurns 40 --by ann',
    load: () => import('./raise.ts'),
  },
  {
    name: 'cancel',
    summary: 'ask a run to stop',
    example: `tallystick cancel runs.db latest --reason 'the shop is closed'`,
    load: () => import('./cancel.ts'),
  },
]
