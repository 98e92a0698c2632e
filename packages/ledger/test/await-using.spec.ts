import { memoryLedger, type Ledger } from '@tallystick/core'
import type { OpenLedger } from '@tallystick/core/store-kit'
import { sampleRunId } from '@tallystick/testkit'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteKeyring, sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

const stores: Readonly<Record<string, () => OpenLedger>> = {
  memory: memoryLedger,
  SQLite: () => sqliteLedger(emptyLedgerFile()),
  // It connects at its first use.
  Postgres: () => postgresLedger({ connectionString: 'postgres://nobody@localhost:1/none' }),
}

describe.each(Object.entries(stores))('a ledger in %s', (_name, open) => {
  it('is closed at the end of the block that declares it with `await using`', async () => {
    let kept: Ledger
    {
      await using ledger = open()
      kept = ledger
    }
    await expect(kept.head(sampleRunId(1))).rejects.toMatchObject({
      code: 'ledger_unavailable',
      message: expect.stringContaining('closed'),
    })
  })

  it('is closed by the `close` of a copy that has its own', async () => {
    const closed = vi.fn<Ledger['close']>(async () => {})
    {
      await using copy: OpenLedger = { ...open(), close: closed }
      expect(typeof copy.head).toBe('function')
    }
    expect(closed).toHaveBeenCalledTimes(1)
  })
})

it('a ledger is as it is where a host knows no `Symbol.asyncDispose`', () => {
  const older: unknown = Object.create(Symbol, { asyncDispose: { value: undefined } })
  onTestFinished(() => void vi.unstubAllGlobals())
  vi.stubGlobal('Symbol', older)
  expect(Reflect.ownKeys(memoryLedger()).map(String)).toEqual(expect.not.arrayContaining(['undefined']))
})

it('a keyring is closed at the end of the block that declares it with `using`', async () => {
  let kept
  {
    using keys = sqliteKeyring(temporaryFile('keys.db'))
    kept = keys
  }
  await expect(kept.keyOf('ada')).rejects.toMatchObject({ code: 'ledger_unavailable' })
})
