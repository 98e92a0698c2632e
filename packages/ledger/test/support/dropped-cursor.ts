import type { Ledger, RunId } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { applyRetention, watchLedger } from '@tallystick/ledger'
import { firstValueFrom, take, toArray } from 'rxjs'
import { expect } from 'vitest'

/**
 * A tail continues after the cursors of a run that was dropped, on record, and yields what is left: retention stops no
 * reader of a ledger.
 */
export async function goesOnBehindDropped(ledger: Ledger): Promise<void> {
  const [gone, stays, unknown] = [1, 2, 3].map(sampleRunId) as [RunId, RunId, RunId]
  const append = async (runId: RunId, seq: number, type: 'run_started' | 'run_finished'): Promise<void> => {
    const events = stampFacts(runId, [sampleFacts(runId)[type]], { afterSeq: seq - 1 })
    await ledger.append(runId, { expectedSeq: seq - 1, epoch: 1 }, events, { durability: 'barrier' })
  }
  await append(gone, 1, 'run_started')
  await append(stays, 1, 'run_started')
  await append(gone, 2, 'run_finished')
  const all = await firstValueFrom(watchLedger(ledger).pipe(take(3), toArray()))
  await applyRetention(ledger, { factsMs: 1 })
  const left = await firstValueFrom(watchLedger(ledger).pipe(take(1), toArray()))
  expect(left).toEqual(all.slice(1, 2))
  const behind = await Promise.all(all.map(({ cursor }) => Array.fromAsync(ledger.tail(cursor))))
  expect(behind).toEqual([left, [], []])
  for (const { cursor } of all) {
    const ofAnother = cursor.replace(gone, unknown).replace(stays, unknown)
    await expect(Array.fromAsync(ledger.tail(ofAnother))).rejects.toThrow(
      /does not belong to an event of this ledger/,
    )
  }
}
