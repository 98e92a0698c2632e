import { describe, expect, it } from 'vitest'
import type { Json } from '@tallystick/core/vocabulary'
import { acceptsNull } from '../src/vocabulary/agent/added-nulls.ts'

describe('a schema that allows null', () => {
  const root = { $defs: { maybe: { type: ['string', 'null'] }, text: { type: 'string' } } }

  it.each<readonly [Json | undefined, boolean]>([
    [undefined, true],
    [true, true],
    [false, false],
    [{}, true],
    [{ type: 'null' }, true],
    [{ type: 'string' }, false],
    [{ type: ['string', 'null'] }, true],
    [{ properties: {} }, false],
    [{ items: {} }, false],
    [{ const: null }, true],
    [{ const: 1 }, false],
    [{ enum: [1, null] }, true],
    [{ enum: [1] }, false],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, true],
    [{ oneOf: [{ type: 'string' }, { type: 'number' }] }, false],
    [{ $ref: '#/$defs/maybe' }, true],
    [{ $ref: '#/$defs/text' }, false],
    [{ $ref: '#/$defs/absent' }, true],
  ])('%j: %s', (schema, isAllowed) => {
    expect(acceptsNull(schema, root)).toBe(isAllowed)
  })
})
