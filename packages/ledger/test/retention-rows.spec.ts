// Which rows of a ledger file a rule of retention reads: those that still hold what is due.
import type { Ledger } from '@tallystick/core'
import type { EventType } from '@tallystick/core/vocabulary'
import { applyRetention } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it } from 'vitest'
import { deltaTypes } from '../src/removal/content-types.ts'
import { removableStoreOf } from '../src/removal/removable-store.ts'
import { driveLookingRun } from './support/looking-run.ts'
import { tamper } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const later = 10 ** 15

/** A closed ledger of one run that has ended. */
async function looked(): Promise<string> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  await driveLookingRun({ ledger, turns: 4, seed: 5, pause: () => Promise.resolve() })
  await ledger.close()
  return path
}

async function withLedger<T>(path: string, work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const ledger = sqliteLedger(path)
  try {
    return await work(ledger)
  } finally {
    await ledger.close()
  }
}

/** The rows that are read for some types, each by the number of its last event. */
async function rowsRead(ledger: Ledger, types: readonly EventType[]): Promise<readonly number[]> {
  const asked = { types, before: later, afterPos: 0, limit: 100 }
  return (await removableStoreOf(ledger)?.payloads(asked))?.items.map(({ seq }) => seq) ?? []
}

it('reads rows of several events only for the types that they hold, and only as long as those are there', async () => {
  await withLedger(await looked(), async (ledger) => {
    const everyDelta = await rowsRead(ledger, deltaTypes)
    expect(everyDelta).toHaveLength(4)
    expect(await rowsRead(ledger, ['assistant_reasoning_delta'])).toEqual([])
    const results = await rowsRead(ledger, ['tool_result'])
    expect(results).toHaveLength(3)
    const report = await applyRetention(ledger, { deltasMs: 0 }, { now: later })
    expect(report.deltas).toBeGreaterThan(80)
    expect(await rowsRead(ledger, deltaTypes)).toEqual([])
    expect(await rowsRead(ledger, ['tool_result'])).toEqual(results)
    expect((await applyRetention(ledger, { deltasMs: 0 }, { now: later })).deltas).toBe(0)
  })
})

it.each([
  ['no JSON', `x'7b0a'`],
  ['JSON without heads', `cast('{"segments":[' || char(10) || '1' || char(10) || ']}' as blob)`],
  [
    'JSON whose heads are no list',
    `cast('{"heads":{"0":"tool_result"},"segments":[' || char(10) || ']}' as blob)`,
  ],
])('reads a row whose body is %s, and says that the ledger is damaged', async (_what, body) => {
  const path = await looked()
  tamper(path, (database) => {
    database.exec(
      `update payload set body = ${body} where pos = (select max(pos) from event where type = 'several')`,
    )
  })
  await withLedger(path, async (ledger) => {
    expect(await rowsRead(ledger, ['assistant_reasoning_delta'])).toHaveLength(1)
    await expect(applyRetention(ledger, { deltasMs: 0 }, { now: later })).rejects.toThrow(/damaged/i)
  })
})
