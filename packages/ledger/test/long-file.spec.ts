import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { getDatabase } from '../src/store/store.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import {
  everyEvent,
  type AskedEvents,
  type SearchedRun,
  type SearchSource,
  findRuns,
  searchBatch,
} from '../src/store/find-events.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const [long, last] = [sampleRunId(1), sampleRunId(2)]

it('a ledger file is searched 8192 places at a time', async () => {
  const rows = 8_192
  const ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const { run_started: start, cancel_requested: cancel, run_finished: end } = sampleFacts(long)
  const facts = [start, ...Array.from({ length: rows - 2 }, () => cancel), end]
  await ledger.append(long, { expectedSeq: 0, epoch: 1 }, stampFacts(long, facts), { durability: 'lazy' })
  const { sessionId: _session, sessionPlace: _place, ...alone } = sampleFacts(last).run_started
  const two = stampFacts(last, [alone, sampleFacts(last).run_finished])
  await ledger.append(last, { expectedSeq: 0, epoch: 1 }, two, { durability: 'lazy' })

  const database = getDatabase(ledger) as StoreDatabase
  const [run] = (await findRuns(database, { ...everyEvent, runId: long })) as readonly [SearchedRun]
  expect(run).toEqual({ runId: long, pos: 1, headSeq: rows })
  const batch = async (
    asked: AskedEvents,
    source: SearchSource,
    after = { pos: 0, seq: 0 },
  ): Promise<readonly unknown[]> => {
    const { rows: found, next } = await searchBatch(database, asked, source, after)
    return [found.length, next?.pos, next?.seq]
  }
  const place = { by: 'place', fromPos: 0, toPos: rows + 2 } as const
  // Full, or with all that may be looked at looked at.
  expect(await batch(everyEvent, place)).toEqual([512, 512, 512])
  expect(await batch(everyEvent, { by: 'run', run })).toEqual([512, 512, 512])
  const rare = { ...everyEvent, types: ['usage_updated'] as const }
  expect(await batch(rare, place)).toEqual([0, rows, 0])
  expect(await batch(rare, place, { pos: 1, seq: 1 })).toEqual([0, rows + 1, 1])
  expect(await batch(rare, place, { pos: 2, seq: 2 })).toEqual([0, undefined, undefined])
  expect(await batch(rare, { by: 'run', run: { ...run, headSeq: rows + 1 } })).toEqual([0, 0, rows])
  expect(await batch(rare, { by: 'run', run })).toEqual([0, undefined, undefined])
})
