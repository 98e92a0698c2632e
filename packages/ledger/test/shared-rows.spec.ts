import { describe, expect, it } from 'vitest'
import { sharedTypes } from '../src/content/event/shared-types.ts'
import { isRareType } from '../src/sqlite/migrations/0010-shared-rows.ts'
import { eventTypes } from '@tallystick/core/vocabulary'
import { fileRowBed } from './support/file-row-bed.ts'
import { sharedRowCases } from './support/shared-row-cases.ts'

describe('rows of a ledger file that hold events of several types', () => {
  it.each(Object.entries(sharedRowCases))('%s', async (_claim, holds) => {
    await expect(holds(fileRowBed())).resolves.toBeUndefined()
  })

  it('hold no type that is looked for by its index', () => {
    expect(eventTypes.filter((type) => !isRareType(type)).toSorted()).toEqual(sharedTypes.toSorted())
  })
})
