import type { Ledger, RunId } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { readRunSummaries } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { isRunId } from '../src/format/event-row.ts'
import { lendWith, storeOf, watchedDatabase } from './support/lent-store.ts'
import { refreshed } from './support/compare-projections.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

/** A ledger with so many runs that have begun, and what its projections tell of them. */
async function begun(count: number): Promise<{ readonly ledger: Ledger; readonly runIds: readonly RunId[] }> {
  const ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const runIds = Array.from({ length: count }, (_, index) => sampleRunId(index + 1))
  for (const runId of runIds) {
    const { run_started, input_received: input } = sampleFacts(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
    const events = stampFacts(runId, [start, input])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  await refreshed(ledger)
  return { ledger, runIds }
}

/** How many runs each question of a ledger is about, where it is about runs. */
function asked(ledger: Ledger): readonly number[] {
  const counts: number[] = []
  const { database } = storeOf(ledger)
  lendWith(ledger, {
    database: watchedDatabase(database, ({ values }) => {
      const runs = values.filter(isRunId).length
      if (runs > 0) counts.push(runs)
    }),
  })
  return counts
}

describe('a list without a filter', () => {
  it('given many runs, when they are listed, then their rows are looked up 64 at a time', async () => {
    const { ledger, runIds } = await begun(130)
    const counts = asked(ledger)
    const listed = await Array.fromAsync(readRunSummaries(ledger, {}, { refresh: false }))
    expect(listed.map(({ runId }) => runId)).toEqual(runIds.toReversed())
    expect(counts).toEqual([64, 64, 2])
  })
})
