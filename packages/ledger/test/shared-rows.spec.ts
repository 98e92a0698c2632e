import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it } from 'vitest'
import { sharedTypes } from '../src/content/event/shared-types.ts'
import { isRareType } from '../src/sqlite/migrations/0010-shared-rows.ts'
import { eventTypes } from '@tallystick/core/vocabulary'
import { tamper, withRaw } from './support/raw-database.ts'
import { sharedRowCases, type SharedRowBed } from './support/shared-row-cases.ts'
import { temporaryFile } from './support/temporary-folder.ts'

function bed(): SharedRowBed {
  const path = temporaryFile()
  return {
    open: () => sqliteLedger(path, { oneWriter: false }),
    rows: async (query) =>
      withRaw(path, (database) =>
        database.prepare<[], Record<string, unknown>>(query.replaceAll('@', '')).all(),
      ),
    tamper: async (statement) => tamper(path, (database) => database.exec(statement.replaceAll('@', ''))),
  }
}

describe('rows of a ledger file that hold events of several types', () => {
  it.each(Object.entries(sharedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(bed())).resolves.toBeUndefined()
  })

  it('hold no type that is looked for by its index', () => {
    expect(eventTypes.filter((type) => !isRareType(type)).toSorted()).toEqual(sharedTypes.toSorted())
  })
})
