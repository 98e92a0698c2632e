import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished } from 'vitest'
import {
  projectionDatabaseOf,
  type ProjectionDatabase,
} from '../src/projection/tables/projection-database.ts'
import { removableStoreOf } from '../src/removal/removable-store.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const [long, last] = [sampleRunId(1), sampleRunId(2)]

it('a ledger file is read 4096 rows at a time by projections, and searched 8192 places at a time for what may go', async () => {
  const rows = 8_192
  const ledger = sqliteLedger(emptyLedgerFile())
  onTestFinished(() => ledger.close())
  const { run_started: start, cancel_requested: cancel, run_finished: end } = everyFact(long)
  const facts = [start, ...Array.from({ length: rows - 2 }, () => cancel), end]
  await ledger.append(long, { expectedSeq: 0, epoch: 1 }, stamped(long, facts), { durability: 'lazy' })
  const { sessionId: _session, sessionPlace: _place, ...alone } = everyFact(last).run_started
  const two = stamped(last, [alone, everyFact(last).run_finished])
  await ledger.append(last, { expectedSeq: 0, epoch: 1 }, two, { durability: 'lazy' })

  const database = projectionDatabaseOf(ledger) as ProjectionDatabase
  expect(await Promise.all(['', '4096', '8192'].map((after) => database.changedRuns(after)))).toEqual([
    { runIds: [long], cursor: '4096', isLast: false },
    { runIds: [long], cursor: '8192', isLast: false },
    { runIds: [last], cursor: '8194', isLast: true },
  ])

  const store = removableStoreOf(ledger)
  const asked = { types: ['run_finished'] as const, before: Number.MAX_SAFE_INTEGER, limit: 10 }
  const found = await Promise.all(
    [0, 1, 2].map(async (afterPos) => {
      const page = await store?.payloads({ ...asked, afterPos })
      return [page?.items.map(({ pos }) => pos), page?.next]
    }),
  )
  expect(found).toEqual([
    [[rows], rows],
    [[rows], rows + 1],
    [[rows, rows + 2], undefined],
  ])
})
