import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { packedRowCases, type PackedRowBed } from './support/packed-row-cases.ts'
import { withRaw } from './support/raw-database.ts'
import { temporaryFile } from './support/temporary-folder.ts'

function bed(): PackedRowBed {
  const path = temporaryFile()
  return {
    open: () => sqliteLedger(path, { oneWriter: false }),
    rows: (query) =>
      Promise.resolve(
        withRaw(path, (database) =>
          database.prepare<[], Record<string, unknown>>(query.replaceAll('@', '')).all(),
        ),
      ),
  }
}

describe('rows of a ledger file that hold several deltas', () => {
  it.each(Object.entries(packedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })
})
