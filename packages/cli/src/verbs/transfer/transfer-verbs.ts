import type { ListedVerb } from '../../command/declare-verb.ts'

/** What moves runs from one ledger to another, a ledger to a newer release, and what keeps it quick. */
export const transferVerbs: readonly ListedVerb[] = [
  {
    name: 'export',
    summary: 'print the events, one JSON object a line',
    example: 'tallystick export runs.db --run latest > run.jsonl',
    load: () => import('./export.ts'),
  },
  {
    name: 'rebuild',
    summary: 'make anew what follows from the events',
    example: 'tallystick rebuild runs.db',
    load: () => import('./rebuild.ts'),
  },
  {
    name: 'import',
    summary: 'read what export printed into a ledger',
    example: 'tallystick import copy.db run.jsonl',
    load: () => import('./import.ts'),
  },
  {
    name: 'upgrade',
    summary: 'bring a ledger of an older release up to date',
    example: 'tallystick upgrade runs.db',
    load: () => import('./upgrade.ts'),
  },
]
