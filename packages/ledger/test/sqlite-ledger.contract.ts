import { ledgerContract } from '@tallystick/testkit/contract'
import type { Ledger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, it } from 'vitest'
import { emptyLedgerFile } from './support/temporary-folder.ts'

describe('sqliteLedger keeps the promises of a ledger', () => {
  // oxlint-disable-next-line vitest/expect-expect -- a case rejects when its promise is broken
  it.each(ledgerContract)('$promise', async ({ run }) => {
    const path = emptyLedgerFile()
    const opened: Ledger[] = []
    await run(async () => {
      const ledger = sqliteLedger(path, { pollIntervalMs: 5 })
      opened.push(ledger)
      return ledger
    })
    for (const ledger of opened) await ledger.close()
  })
})
