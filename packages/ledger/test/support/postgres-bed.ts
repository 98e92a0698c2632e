import type { Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { connectionString } from './postgres-database.ts'

export const run: RunId = sampleRunId(1)
export const start: readonly RuntimeEvent[] = stampFacts(run, [sampleFacts(run).run_started])
export const next: readonly RuntimeEvent[] = stampFacts(
  run,
  [sampleFacts(run).usage_updated, sampleFacts(run).cancel_requested],
  {
    afterSeq: 1,
  },
)
export const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
export const barrier = { durability: 'barrier' } as const

/** Appends events where the first of them belongs. */
export function append(
  ledger: Ledger,
  events: readonly RuntimeEvent[],
  runId: RunId = run,
): Promise<unknown> {
  const [first] = events
  const expected = { expectedSeq: (first?.seq ?? 1) - 1, epoch: first?.epoch ?? 1 }
  return ledger.append(runId, expected, events, barrier)
}

/** The address of the shared server with something changed. */
export function address(change: (url: URL) => void): string {
  const url = new URL(connectionString)
  change(url)
  return url.href
}
