import type { Ledger } from '@tallystick/core'

/** How many events a ledger holds, as the ends of its runs say. */
export async function countEvents(ledger: Ledger): Promise<number> {
  let events = 0
  for await (const { head } of ledger.runs()) events += head.seq
  return events
}
