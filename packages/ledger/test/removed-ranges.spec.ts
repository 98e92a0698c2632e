import { LedgerConflictError } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { applyRetention, redact } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { droppedRunConflict } from '../src/removal/dropped-run.ts'
import { removableStoreOf } from '../src/removal/removable-store.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)

/** A run that has ended, with events of which the same is left. */
async function ended() {
  const ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const facts = everyFact(run)
  const same = Array.from({ length: 5 }, () => facts.cancel_requested)
  const events = stamped(run, [facts.run_started, ...same, facts.run_finished])
  await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  /** The ranges that were taken away, in order. */
  const ranges = async (): Promise<readonly unknown[]> => {
    const removals = await Array.fromAsync(removableStoreOf(ledger)?.removals(run) ?? [])
    return removals.map(({ fromSeq, toSeq, kind, by }) => [fromSeq, toSeq, kind, by])
  }
  return { ledger, ranges }
}

it('neighbours of which the same is left share one removal, and others do not', async () => {
  const { ledger, ranges } = await ended()
  const taken = { by: 'ada', reason: 'asked for', at: 5 }
  expect(await redact(ledger, run, [1, 2, 3, 5, 6], taken)).toBe(5)
  expect(await ranges()).toEqual([
    [1, 1, 'redacted', 'ada'],
    [2, 3, 'redacted', 'ada'],
    [5, 6, 'redacted', 'ada'],
  ])
  expect(await redact(ledger, run, [2, 4], taken)).toBe(1)
  expect((await ranges()).slice(3)).toEqual([[4, 4, 'redacted', 'ada']])
})

it('retention that only counts takes nothing away, and counts what it would', async () => {
  const { ledger, ranges } = await ended()
  const reported: number[] = []
  const now = 1_760_000_001_000
  const onProgress = (soFar: { readonly runs: number }): void => void reported.push(soFar.runs)
  const counted = await applyRetention(ledger, { factsMs: 0 }, { now, dryRun: true, onProgress })
  expect(counted).toEqual({ deltas: 0, content: 0, runs: 1, events: 7 })
  expect(reported).toEqual([1])
  expect(await ranges()).toEqual([])
  expect(await applyRetention(ledger, { factsMs: 0 }, { now })).toEqual(counted)
  expect(await ledger.head(run)).toBeUndefined()
})

it('a run that was dropped does not come back, and the refusal says so', async () => {
  const { ledger, ranges } = await ended()
  await applyRetention(ledger, { factsMs: 0 }, { now: 1_760_000_001_000, by: 'nightly' })
  expect(await ranges()).toEqual([[1, 7, 'dropped', 'nightly']])
  const start = stamped(run, [everyFact(run).run_started])
  const again = ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
  await expect(again).rejects.toThrow(LedgerConflictError)
  await expect(again).rejects.toThrow(/was dropped from this ledger, on record, and cannot come back/)
  expect(droppedRunConflict(new Error('something else'), run)).toBeUndefined()
  expect(droppedRunConflict('a run that was dropped does not come back', run)).toBeUndefined()
})
