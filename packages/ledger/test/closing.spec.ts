import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { closingCases } from './support/closing-cases.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

describe('closing a ledger file whose runs are driven', () => {
  it.each(Object.entries(closingCases))('%s', async (_claim, keeps) => {
    const path = emptyLedgerFile()
    await expect(keeps(() => sqliteLedger(path))).resolves.toBeUndefined()
  })
})
