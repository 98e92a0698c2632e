import type { ListedVerb } from '../../command/declare-verb.ts'

/** What takes content away, on record. */
export const retentionVerbs: readonly ListedVerb[] = [
  {
    name: 'redact',
    summary: 'take away what events said',
    example: `tallystick redact runs.db latest --events 2,7-9 --reason 'ticket 4711'`,
    load: () => import('./redact.ts'),
  },
  {
    name: 'retain',
    summary: 'take away what is older than given',
    example: 'tallystick retain runs.db --deltas 1d --content 90d --facts 2y',
    load: () => import('./retain.ts'),
  },
  {
    name: 'erase',
    summary: 'destroy the keys of a subject',
    example: 'tallystick erase keys.db customer-7',
    load: () => import('./erase.ts'),
  },
]
