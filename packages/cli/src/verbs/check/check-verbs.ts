import type { ListedVerb } from '../../command/declare-verb.ts'

/** What finds out whether a ledger is what was written, and whether today's agents still do what is in it. */
export const checkVerbs: readonly ListedVerb[] = [
  {
    name: 'verify',
    summary: 'check the chain and the laws of every run',
    example: 'tallystick verify runs.db --checkpoints checkpoints --public-key key.pub',
    load: () => import('./verify.ts'),
  },
  {
    name: 'replay',
    summary: 'drive a run again from its record, and report where it differs',
    example: 'tallystick replay runs.db latest',
    load: () => import('./replay.ts'),
  },
  {
    name: 'regression',
    summary: 'write a run as a test that vitest runs offline',
    example: 'tallystick regression runs.db latest --out test/refund.spec.ts',
    load: () => import('./regression.ts'),
  },
  {
    name: 'checkpoint',
    summary: 'sign where every run ends now',
    example: 'tallystick checkpoint runs.db --out checkpoints --key key.pem --origin example.com/agents',
    load: () => import('./checkpoint.ts'),
  },
  {
    name: 'policy',
    summary: 'check approval rules: their examples, and what they decide about calls on record',
    example: 'tallystick policy check rules.json runs.db',
    load: () => import('./policy.ts'),
  },
]

/** What serves those who build a ledger of their own. */
export const storeVerbs: readonly ListedVerb[] = [
  {
    name: 'contract',
    summary: 'find out which promises a store of your own keeps',
    example: 'tallystick contract ./my-store.ts',
    load: () => import('./contract.ts'),
  },
]
