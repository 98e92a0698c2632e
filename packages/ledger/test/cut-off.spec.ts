import { memoryLedger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { cutOffCases } from './support/cut-off-cases.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

describe('closing a ledger file that is followed', () => {
  it.each(Object.entries(cutOffCases))('%s', async (_claim, keeps) => {
    const path = emptyLedgerFile()
    await expect(keeps(() => sqliteLedger(path))).resolves.toBeUndefined()
  })
})

describe('closing a ledger in memory that is followed', () => {
  // It drains no run.
  const cases = Object.entries(cutOffCases).filter(([claim]) => !claim.includes('interrupts'))
  it.each(cases)('%s', async (_claim, keeps) => {
    await expect(keeps(memoryLedger)).resolves.toBeUndefined()
  })
})
