import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { LedgerDamagedError } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { expect, it, onTestFinished, vi } from 'vitest'
import { withRaw } from './support/raw-database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

it('a list of a ledger that is closed in its middle ends there, and says why', async () => {
  const ledger = sqliteLedger(emptyLedgerFile())
  for (const ordinal of [1, 2, 3]) {
    const runId = sampleRunId(ordinal)
    const { sessionId: _session, sessionPlace: _place, ...start } = everyFact(runId).run_started
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stamped(runId, [start]), { durability: 'lazy' })
  }
  const listed = ledger.runs()[Symbol.asyncIterator]()
  expect((await listed.next()).value).toMatchObject({ runId: sampleRunId(3) })
  await ledger.close()
  await expect(listed.next()).rejects.toThrow(/ was closed, so it can neither be read nor written/)
})

it('a ledger that could not be brought up to date says so until it is closed, and then that it was closed', async () => {
  const path = emptyLedgerFile()
  withRaw(path, (database) => {
    database.exec('drop table schema_migration; create table schema_migration (name text)')
    database.pragma('user_version = 1')
  })
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  const runId = sampleRunId(1)
  const append = (): Promise<unknown> =>
    ledger.append(runId, { expectedSeq: 0, epoch: 1 }, stamped(runId, [everyFact(runId).run_started]), {
      durability: 'lazy',
    })
  const entry = { key: 'k', command: { type: 'cancel', by: 'me' }, at: 1 } as const
  const uses = [() => ledger.head(runId), () => ledger.put(runId, entry), append]
  for (const use of uses) await expect(use()).rejects.toThrow(LedgerDamagedError)
  await ledger.close()
  for (const use of uses) await expect(use()).rejects.toThrow(/ was closed, so it can neither be read/)
})

it('a ledger that is closed claims no file any more, whatever is asked of it', async () => {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  const runId = sampleRunId(1)
  const start = stamped(runId, [everyFact(runId).run_started])
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
