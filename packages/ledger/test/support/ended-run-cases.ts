import { memoryLedger, type Ledger, type RunId } from '@tallystick/core'
import { readFirstInputs, readRunSummaries, type ListedRun, type SummaryFilter } from '@tallystick/ledger'
import { expect } from 'vitest'
import { longRun } from './long-run.ts'
import { everyRun, recordSome, type ProjectionBed } from './projection-bed.ts'

/** The same runs in a ledger that keeps no projections: all that it tells, it folds. */
async function folding(ledger: Ledger): Promise<Ledger> {
  const copy = memoryLedger()
  for (const events of (await everyRun(ledger)).toReversed()) {
    for (const event of events) {
      const { runId, seq, epoch } = event
      while (((await copy.head(runId))?.epoch ?? 1) < epoch) await copy.acquire(runId)
      await copy.append(runId, { expectedSeq: seq - 1, epoch }, [event], { durability: 'lazy' })
    }
  }
  return copy
}

/** What is listed, and which runs are read for it. */
async function listing(
  ledger: Ledger,
  filter: SummaryFilter = {},
): Promise<{ readonly runs: readonly ListedRun[]; readonly read: readonly string[] }> {
  const read: string[] = []
  const original = ledger.read.bind(ledger)
  ledger.read = (runId, range) => {
    read.push(runId)
    return original(runId, range)
  }
  try {
    return { runs: await Array.fromAsync(readRunSummaries(ledger, filter, { refresh: false })), read }
  } finally {
    ledger.read = original
  }
}

/** Which statement spoils a row of a run. */
const spoiled: readonly (readonly [claim: string, statement: (row: string) => string])[] = [
  ['missing', (row) => `delete from event where pos = (${row})`],
  ['of an unknown type', (row) => `update event set type = 'sung' where pos = (${row})`],
  ['of a later version', (row) => `update event set v = 9 where pos = (${row})`],
  ['changed', (row) => `update event set salt = hash where pos = (${row})`],
]

/** How runs that have ended are listed where nothing is projected of them, on every store, by claim. */
export const endedRunCases: Readonly<Record<string, (bed: ProjectionBed) => Promise<void>>> = {
  async 'that are missing are not needed for runs that have ended: no events are read but those that say how'(
    bed,
  ) {
    const ledger = bed.open()
    await recordSome(ledger, 3)
    await longRun(ledger, 7, { sessionId: 'ann' })
    const { runs, read } = await listing(ledger)
    expect(runs).toHaveLength(4)
    expect(read).toEqual([])
    expect(runs).toEqual((await listing(await folding(ledger))).runs)
    const runIds = runs.map(({ runId }) => runId)
    const inputs = await readFirstInputs(ledger, runIds)
    expect([...inputs]).toEqual(
      expect.arrayContaining([...(await readFirstInputs(await folding(ledger), runIds))]),
    )
    expect(inputs.size).toBe(4)
  },

  async 'that are missing are made for a run with an event that cannot be read'(bed) {
    for (const [claim, statement] of spoiled) {
      const ledger = bed.open()
      const [runId] = (await recordSome(ledger, 1)) as readonly [RunId]
      const type = claim === 'changed' ? 'run_finished' : 'assistant_started'
      const seq = (await Array.fromAsync(ledger.read(runId))).find((event) => event.type === type)?.seq
      await bed.tamper(statement(`select pos from event where run_id = '${runId}' and seq = ${seq}`))
      const { runs, read } = await listing(ledger)
      expect(`${claim}: ${runs.map(({ status }) => status).join()}`).toBe(`${claim}: unreadable`)
      expect(read).toContain(runId)
      for (const table of ['event', 'run']) await bed.tamper(`delete from ${table}`)
    }
  },

  async 'that are missing tell of damage between the events that are read where damage is asked for'(bed) {
    const ledger = bed.open()
    const [runId] = await recordSome(ledger, 1)
    await bed.tamper(
      `update event set salt = hash where pos = (
        select pos from event where run_id = '${runId}' and type = 'input_received' limit 1)`,
    )
    expect((await listing(ledger)).runs).toMatchObject([{ runId, status: 'done' }])
    expect((await listing(ledger, { statuses: ['unreadable'] })).runs).toMatchObject([
      { runId, code: 'ledger_damaged' },
    ])
  },
}
