import { LedgerConflictError, LedgerDamagedError, memoryLedger } from '@tallystick/core'
import { importEvents } from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { linesOfLedger } from './support/exported.ts'
import { recordRun } from './support/record-run.ts'

/** The lines of a recorded run, whose epoch rises from these events on to these numbers. */
async function linesOf(rises: Readonly<Record<number, number>>): Promise<readonly string[]> {
  const ledger = memoryLedger()
  await recordRun(ledger, 1)
  let epoch = 1
  return (await linesOfLedger(ledger)).map((line) => {
    const event = JSON.parse(line) as { readonly seq: number }
    epoch = rises[event.seq] ?? epoch
    return JSON.stringify({ ...event, epoch })
  })
}

describe('an import of a run that was taken over', () => {
  it.each<readonly [string, Readonly<Record<number, number>>, number]>([
    ['without a break', { 3: 2, 4: 3, 5: 4 }, 4],
    ['ten thousand times without an event', { 3: 10_002 }, 10_002],
    ['as often in two steps', { 3: 5_002, 4: 10_003 }, 10_003],
  ])('makes its take-overs again: %s', async (_name, rises, epoch) => {
    const ledger = memoryLedger()
    const lines = await linesOf(rises)
    const report = await importEvents(ledger, lines)
    expect(report).toEqual({ runs: 1, events: lines.length, present: 0 })
    const [run] = await Array.fromAsync(ledger.runs())
    expect(run?.head).toEqual({ seq: lines.length, epoch })
    expect(await linesOfLedger(ledger)).toEqual(lines)
    expect(await importEvents(ledger, lines)).toEqual({ runs: 1, events: 0, present: lines.length })
  })

  it.each<readonly [string, Readonly<Record<number, number>>, string]>([
    ['more often than ten thousand times', { 3: 10_003 }, 'rises from 1 to 10003 at event 3'],
    ['as often in two steps', { 3: 5_002, 4: 10_004 }, 'rises from 5002 to 10004 at event 4'],
  ])('is refused where no event came of it %s', async (_name, rises, message) => {
    const ledger = memoryLedger()
    const refused = importEvents(ledger, await linesOf(rises))
    await expect(refused).rejects.toThrow(LedgerDamagedError)
    await expect(refused).rejects.toThrow(message)
  })

  it('is refused where its ledger has taken it over since', async () => {
    const ledger = memoryLedger()
    const lines = await linesOf({})
    await importEvents(ledger, lines.slice(0, 5))
    const [run] = await Array.fromAsync(ledger.runs())
    if (run) await ledger.acquire(run.runId)
    const refused = importEvents(ledger, lines)
    await expect(refused).rejects.toThrow(LedgerConflictError)
    await expect(refused).rejects.toThrow(
      /ends at event 5 in this ledger, and was taken over since, by writer 2/,
    )
  })
})
