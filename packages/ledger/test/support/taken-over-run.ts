import type { Ledger, RunId } from '@tallystick/core'
import { sampleFacts, sampleMessage, stampFacts } from '@tallystick/testkit'

/** Records four events of a run, two commands of which one was taken, and a take-over; closes the ledger. */
export async function recordTakenOverRun(ledger: Ledger, run: RunId): Promise<void> {
  const facts = sampleFacts(run)
  const events = stampFacts(run, [facts.run_started, facts.tool_started, facts.tool_result])
  // One at a time, so that each has a row of its own.
  for (const [expectedSeq, event] of events.entries()) {
    await ledger.append(run, { expectedSeq, epoch: 1 }, [event], { durability: 'barrier' })
  }
  const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
  for (const key of ['k1', 'k2']) await ledger.put(run, { key, command, at: 1 })
  const next = stampFacts(run, [facts.cancel_requested], { afterSeq: 3 })
  await ledger.append(run, { expectedSeq: 3, epoch: 1 }, next, {
    durability: 'barrier',
    consumedInboxKeys: ['k1'],
  })
  await ledger.acquire(run)
  await ledger.close()
}
