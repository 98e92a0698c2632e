import { existsSync } from 'node:fs'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openDatabase } from '../src/sqlite/connection/open-database.ts'
import { StoreAccess } from '../src/sqlite/store-access.ts'
import { sqliteTail } from '../src/sqlite/tail.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const start = stamped(run, [everyFact(run).run_started])

/** The settings of a connection to a ledger file. */
async function settings(options: SqliteLedgerOptions) {
  const path = temporaryFile()
  await sqliteLedger(path).close()
  const { database } = openDatabase(path, options)
  onTestFinished(() => void database.close())
  const setting = (name: string): unknown => database.pragma(name, { simple: true })
  return { setting, database }
}

describe('the connection to a ledger file', () => {
  it('writes ahead, syncs each commit, erases what it deletes, and trusts no schema', async () => {
    const { setting, database } = await settings({})
    expect(database.readonly).toBe(false)
    expect(
      ['journal_mode', 'synchronous', 'fullfsync', 'checkpoint_fullfsync'].map((name) => setting(name)),
    ).toEqual(['wal', 2, 1, 1])
    expect(['secure_delete', 'trusted_schema', 'busy_timeout'].map((name) => setting(name))).toEqual([
      ...[1, 0, 5_000],
    ])
    expect(setting('journal_size_limit')).toBe(64 * 1024 * 1024)
  })

  it('waits as long, and keeps a log as large, as it is asked to', async () => {
    const { setting } = await settings({ busyTimeoutMs: 7, maxWalBytes: 12_345 })
    expect([setting('busy_timeout'), setting('journal_size_limit')]).toEqual([7, 12_345])
  })

  it('cannot write where it was opened to read, and trusts no schema either', async () => {
    const { setting, database } = await settings({ readOnly: true })
    expect([database.readonly, setting('trusted_schema')]).toEqual([true, 0])
    expect(setting('journal_mode')).toBe('delete')
  })
})

describe('a ledger file that is opened to read, or for many writers', () => {
  it.each<SqliteLedgerOptions>([{ readOnly: true }, { oneWriter: false }])(
    'says nothing of who drives its runs: %j',
    async (options) => {
      const path = temporaryFile()
      const writer = sqliteLedger(path)
      onTestFinished(() => writer.close())
      await writer.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
      const ledger = sqliteLedger(path, options)
      expect(await ledger.isDriven?.(run)).toBeUndefined()
      await ledger.close()
      expect(existsSync(`${path}-writer`)).toBe(true)
      expect(await writer.isDriven?.(run)).toBe(true)
    },
  )
})

describe('a tail of a ledger file', () => {
  it('ends where the file ended when it began, also where it held nothing', async () => {
    const path = temporaryFile()
    const opened = openDatabase(path, {})
    const access = new StoreAccess(opened, {})
    onTestFinished(() => access.close())
    const first = { xid: '0', pos: 0, left: 0, runId: '' }
    const begun = await sqliteTail(access).begin(first)
    await access.write((store) =>
      store.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' }),
    )
    expect(await begun.batch(first)).toEqual({ rows: [], isLast: true })
    const again = await sqliteTail(access).begin(first)
    expect((await again.batch(first)).rows.map(({ seq, xid }) => [seq, xid])).toEqual([[1, '0']])
  })
})
