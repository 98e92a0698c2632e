import { eventTraits, eventTypes } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { upcasters } from '../src/versions/upcasters.ts'

describe('the upcasters of this release', () => {
  it.each(eventTypes)('lead from every older version of %s to the newest, and no further', (type) => {
    const older = Array.from({ length: eventTraits[type].v - 1 }, (_, index) => `${index + 1}`)
    expect(Object.keys(upcasters[type] ?? {})).toEqual(older)
  })

  it('are of types that exist', () => {
    expect(eventTypes).toEqual(expect.arrayContaining(Object.keys(upcasters)))
  })
})
