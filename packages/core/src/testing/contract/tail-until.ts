import type { Ledger, TailCursor, TailedEvent } from '../../ports/ledger.ts'

/**
 * What tails yield behind a cursor, one after the other, once they have yielded so many events: what others do in the
 * same database may keep back for a while what was acknowledged. Looks again at each hint, and so hangs for the
 * runner's time limit where the events never come.
 */
export async function tailUntil(
  ledger: Ledger,
  count: number,
  after?: TailCursor,
): Promise<readonly TailedEvent[]> {
  const seen: TailedEvent[] = []
  let [isLooking, isChanged] = [false, false]
  const look = async (): Promise<void> => {
    isChanged = true
    if (isLooking) return
    isLooking = true
    while (isChanged) {
      isChanged = false
      for await (const tailed of ledger.tail(seen.at(-1)?.cursor ?? after)) seen.push(tailed)
    }
    isLooking = false
  }
  await new Promise<void>((resolve, reject) => {
    const lookOn = (): void => {
      look().then(() => {
        if (seen.length < count) return
        hints.unsubscribe()
        resolve()
      }, reject)
    }
    const hints = ledger.changes().subscribe({ next: lookOn, error: reject })
    lookOn()
  })
  return seen
}
