import { describe, expect, it } from 'vitest'
import { fileRowBed } from './support/file-row-bed.ts'
import { packedRowCases } from './support/packed-row-cases.ts'

describe('rows of a ledger file that hold several deltas', () => {
  it.each(Object.entries(packedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(fileRowBed())).resolves.toBeUndefined()
  })
})
