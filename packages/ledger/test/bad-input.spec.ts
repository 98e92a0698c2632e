import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { badInputCases } from './support/bad-input-cases.ts'
import { temporaryFile } from './support/temporary-folder.ts'

describe('what comes in bad into a ledger file', () => {
  it.each(Object.entries(badInputCases))('%s', async (_claim, keeps) => {
    await expect(keeps({ open: () => sqliteLedger(temporaryFile()) })).resolves.toBeUndefined()
  })
})
