import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished, vi } from 'vitest'
import { rowsPerBatch } from '../src/store/database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

it('a list of a ledger that is closed in its middle ends there, and says why', async () => {
  const ledger = sqliteLedger(emptyLedgerFile())
  for (const ordinal of [1, 2, 3]) {
    const runId = sampleRunId(ordinal)
    const { sessionId: _session, sessionPlace: _place, ...start } = sampleFacts(runId).run_started
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stampFacts(runId, [start]), {
      durability: 'lazy',
    })
  }
  const listed = ledger.runs()[Symbol.asyncIterator]()
  expect((await listed.next()).value).toMatchObject({ runId: sampleRunId(3) })
  await ledger.close()
  await expect(listed.next()).rejects.toThrow(/ was closed, so it can neither be read nor written/)
})

it('a search of a ledger that is closed between two of its batches ends there, and says why', async () => {
  const ledger = sqliteLedger(emptyLedgerFile())
  const runId = sampleRunId(1)
  const { run_started, usage_updated } = sampleFacts(runId)
  const events = stampFacts(runId, [
    run_started,
    ...Array.from({ length: rowsPerBatch }, () => usage_updated),
  ])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  const found = ledger.find({})[Symbol.asyncIterator]()
  for (let count = 0; count < rowsPerBatch; count++) await found.next()
  await ledger.close()
  await expect(found.next()).rejects.toThrow(/ was closed, so it can neither be read nor written/)
})

it('a ledger that is closed claims no file any more, whatever is asked of it', async () => {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const runId = sampleRunId(1)
  const start = stampFacts(runId, [sampleFacts(runId).run_started])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
  await Promise.all([ledger.close(), ledger.close()])
  await ledger.close()
  const files = readdirSync(dirname(path))
  expect(files).toEqual(['runs.db'])
  const closed = / was closed, so it can neither be read nor written/
  const next = { expectedSeq: 1, epoch: 1 }
  await expect(ledger.append(runId, next, [], { durability: 'lazy' })).rejects.toThrow(closed)
  await expect(ledger.acquire(runId)).rejects.toThrow(closed)
  expect(readdirSync(dirname(path))).toEqual(files)
})

it.each([
  [undefined, 250],
  [7, 7],
])(
  'a ledger given the interval %s looks for what others wrote each %i ms, while it is asked to',
  async (given, due) => {
    const every = vi.spyOn(globalThis, 'setInterval')
    onTestFinished(() => every.mockRestore())
    const ledger = sqliteLedger(emptyLedgerFile(), given === undefined ? {} : { pollIntervalMs: given })
    onTestFinished(() => ledger.close())
    expect(every).not.toHaveBeenCalled()
    ledger.changes?.(sampleRunId(1)).subscribe().unsubscribe()
    expect(every.mock.calls.map(([, ms]) => ms)).toEqual([due])
  },
)
