import { describe, expect, it } from 'vitest'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { findInputFault } from '../src/tools/tool-schema.ts'

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  ...more,
})
const text = { type: 'string' }

describe('an input against the recorded schema of a tool', () => {
  it.each<[string, JsonObject, JsonObject, RegExp]>([
    ['that fits', object({ to: text }, { required: ['to'] }), { to: 'ada' }, /^it fits$/],
    ['with a field that is missing', object({ to: text }, { required: ['to'] }), {}, /^to: /],
    ['with a fault inside', object({ a: object({ b: text }) }), { a: { b: 1 } }, /^a\.b: /],
    ['with a fault in a list', object({ a: { type: 'array', items: text } }), { a: ['x', 1] }, /^a\.1: /],
    ['with a field too many', object({}, { additionalProperties: false }), { a: 1 }, /^a: is not allowed$/],
    ['whose values are of a list', object({ a: { enum: ['x', 'y'] } }), { a: 'z' }, /^a: /],
    ['where the schema cannot be used', { type: 'object', not: 7 }, { a: 1 }, /^it fits$/],
  ])('%s says where it does not fit', async (_name, schema, input, fault) => {
    expect((await findInputFault(schema, input)) ?? 'it fits').toMatch(fault)
  })

  it('is tried against no pattern or format, wherever in the schema it is', async () => {
    const never = { type: 'string', pattern: '^never$' }
    const schema = object(
      {
        plain: never,
        mail: { type: 'string', format: 'email' },
        list: { type: 'array', items: never },
        either: { anyOf: [never, { type: 'number' }] },
        named: { $ref: '#/$defs/format' },
      },
      { patternProperties: { '^x': { type: 'number' } }, $defs: { format: never } },
    )
    expect(
      await findInputFault(schema, { plain: 'a', mail: 'a', list: ['a'], either: 'a', named: 'a', x1: 'a' }),
    ).toBeUndefined()
    expect(await findInputFault(schema, { named: 1 })).toMatch(/^named: /)
  })

  it('is tried against values, and against no object or list that a value has to equal', async () => {
    const equal = object({
      ...{
        point: { const: { x: 1, format: 2 } },
        pair: { enum: [['a'], null, { b: 1 }] },
        kind: { const: 'k' },
      },
      ...{ none: { const: null }, either: { enum: ['x', null] } },
    })
    const fits = { point: { x: 1, format: 2 }, pair: ['a'], kind: 'k', none: null, either: null }
    expect(await findInputFault(equal, fits)).toBeUndefined()
    expect(await findInputFault(equal, { ...fits, kind: 'l' })).toMatch(/^kind: /)
    expect(await findInputFault(equal, { ...fits, none: 0 })).toMatch(/^none: /)
    expect(await findInputFault(equal, { ...fits, either: 'y' })).toMatch(/^either: /)
    const fields = object({ const: object({ a: text }), enum: object({ a: text }) })
    expect(await findInputFault(fields, { const: { a: 1 } })).toMatch(/^const\.a: /)
    expect(await findInputFault(fields, { enum: { a: 1 } })).toMatch(/^enum\.a: /)
  })

  it('is tried against fields that have the name of a keyword', async () => {
    const schema = object({ pattern: text, format: { type: 'number' } }, { required: ['pattern', 'format'] })
    expect(await findInputFault(schema, { pattern: 'a', format: 1 })).toBeUndefined()
    expect(await findInputFault(schema, { pattern: 1, format: 1 })).toMatch(/^pattern: /)
    expect(await findInputFault(schema, { pattern: 'a' })).toMatch(/^format: /)
  })

  it('names eight faults at most', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `field${index}`)
    const schema = object(Object.fromEntries(names.map((name) => [name, text])))
    const faults = await findInputFault(schema, Object.fromEntries(names.map((name) => [name, 1])))
    expect(faults?.split('; ').map((fault) => fault.split(':')[0])).toEqual(names.slice(0, 8))
  })
})
