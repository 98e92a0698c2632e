import { describe, expect, it } from 'vitest'
import { fileRowBed } from './support/file-row-bed.ts'
import { retentionRowCases } from './support/retention-row-cases.ts'

describe('what a rule of retention reads of a ledger file', () => {
  it.each(Object.entries(retentionRowCases))('%s', async (_claim, holds) => {
    await expect(holds({ ...fileRowBed(), bytes: (hex) => `x'${hex}'` })).resolves.toBeUndefined()
  })
})
