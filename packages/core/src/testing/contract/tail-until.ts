import type { Ledger, TailCursor, TailedEvent } from '../../ledger/ledger.ts'
import { caughtUp, changesOfEveryRun } from '../../ledger/changes.ts'

/**
 * What tails yield after a cursor, one after the other, once they have yielded so many events: what others do in the
 * same database may keep back for a while what was acknowledged. Looks again at each hint, and so hangs for the
 * runner's time limit where the events never come.
 */
export async function tailUntil(
  ledger: Ledger,
  count: number,
  after?: TailCursor,
): Promise<readonly TailedEvent[]> {
  const seen: TailedEvent[] = []
  for await (const tailed of changesOfEveryRun(ledger, after)) {
    if (tailed !== caughtUp) seen.push(tailed)
    else if (seen.length >= count) break
  }
  return seen
}
