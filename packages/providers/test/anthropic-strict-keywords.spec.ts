import type { JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { toStreamFailure } from '../src/anthropic/failure.ts'
import { fitSchema } from '../src/anthropic/tools.ts'

const text = { type: 'string' }
const object = (properties: JsonObject, required = Object.keys(properties)): JsonObject => ({
  ...{ type: 'object', properties, required },
})
const words = (list: string): readonly string[] => list.trim().split(/\s+/)
const inside = (schema: JsonObject): unknown => {
  const { schema: fitted, notes } = fitSchema(object({ x: schema }))
  return [(fitted['properties'] as JsonObject)['x'], notes]
}

describe('a strict schema for Anthropic', () => {
  it.each(words('date-time time date duration email hostname uri ipv4 ipv6 uuid'))(
    'keeps the format %s',
    (format) => {
      expect(inside({ type: 'string', format })).toEqual([{ type: 'string', format }, []])
    },
  )

  it.each(words('$schema $id $comment examples deprecated readOnly writeOnly'))(
    'loses %s without a note',
    (keyword) => {
      expect(inside({ type: 'string', [keyword]: 1 })).toEqual([text, []])
    },
  )

  it.each(words('items properties required additionalProperties anyOf oneOf allOf $ref $defs definitions'))(
    'has no words for %s where it says nothing',
    (keyword) => {
      expect(inside({ type: 'string', [keyword]: 1 })).toEqual([text, []])
    },
  )

  it.each(words('patternProperties prefixItems $dynamicRef $recursiveRef $anchor $dynamicAnchor'))(
    'cannot be without %s',
    (keyword) => {
      expect(() => inside({ type: 'string', [keyword]: 'x' })).toThrow(`${keyword} at #/properties/x`)
    },
  )

  it.each([{ anyOf: [] }, { oneOf: [] }, { allOf: [] }, { $ref: '#' }, { type: 'string' }])(
    'is at its root a plain object: not %j',
    (root) => {
      expect(() => fitSchema({ properties: {}, ...root })).toThrow('its root is not a plain object')
    },
  )

  it('keeps that a list has an item, and tells of longer ones', () => {
    const list = (minItems: number): JsonObject => ({ type: 'array', items: text, minItems })
    expect([0, 1].map((count) => inside(list(count)))).toEqual([0, 1].map((count) => [list(count), []]))
    expect(inside(list(2))).toEqual([
      { type: 'array', items: text, description: 'Rules: {"minItems":2}' },
      ['minItems at #/properties/x was put into the description'],
    ])
  })

  it('has constants that are no objects, whatever they are', () => {
    for (const schema of [{ const: null }, { const: 1 }, { enum: [null, 'a', 1, true] }, { enum: 'a' }]) {
      expect(inside(schema)).toEqual([schema, []])
    }
    for (const schema of [{ const: {} }, { const: [1] }, { enum: ['a', []] }, { enum: {} }]) {
      expect(() => inside(schema)).toThrow('of objects at #/properties/x')
    }
  })

  it('counts properties that may be left out, and places of more than one type', () => {
    const sizeOf = (schema: JsonObject) => fitSchema(object({ x: schema })).size
    expect(sizeOf(text)).toEqual({ optional: 0, unions: 0 })
    expect(sizeOf({ type: ['string', 'null'] })).toEqual({ optional: 0, unions: 1 })
    expect(sizeOf({ type: ['string'] })).toEqual({ optional: 0, unions: 0 })
    expect(sizeOf({ anyOf: [text] })).toEqual({ optional: 0, unions: 1 })
    expect(sizeOf(object({ a: text, b: text }, ['a']))).toEqual({ optional: 1, unions: 0 })
    expect(sizeOf({ ...object({ a: text }, []), required: undefined as never })).toEqual({
      optional: 1,
      unions: 0,
    })
  })

  it('keeps a title and a description beside a reference to itself, and names what else stood there', () => {
    const $defs = { a: text }
    const given = { $ref: '#/$defs/a', title: 'T', description: 'D', minLength: 1, default: 'x' }
    const { schema, notes } = fitSchema({ ...object({ x: given }), $defs })
    expect(schema).toMatchObject({ properties: { x: { $ref: '#/$defs/a' } }, $defs })
    expect(notes).toEqual(
      words('minLength default').map((key) => `${key} beside the reference at #/properties/x was left out`),
    )
  })

  it('finds definitions whose names are written with escapes', () => {
    const $defs = { 'a/b': text, 'c~d': { type: 'number' } }
    const given = object({ x: { $ref: '#/$defs/a~1b' }, y: { $ref: '#/$defs/c~0d' } })
    expect(fitSchema({ ...given, $defs }).schema['$defs']).toEqual($defs)
  })

  it('may have definitions that refer to one another, and to none of them twice', () => {
    const ref = ($ref: string): JsonObject => ({ $ref })
    const $defs = {
      a: object({ x: ref('#/$defs/c'), y: ref('#/$defs/b') }),
      b: object({ x: ref('#/$defs/c') }),
      c: text,
    }
    const { schema } = fitSchema({ ...object({ x: ref('#/$defs/a'), y: ref('#/$defs/b') }), $defs })
    expect(Object.keys(schema['$defs'] as object).toSorted()).toEqual(['a', 'b', 'c'])
    const circle = { ...$defs, c: object({ x: ref('#/$defs/a') }) }
    expect(() => fitSchema({ ...object({ x: ref('#/$defs/b') }), $defs: circle })).toThrow('refers to itself')
  })
})

describe('a failure in a stream of Anthropic', () => {
  it.each([
    ['invalid_request_error', 'invalid_request', false],
    ['authentication_error', 'authentication', false],
    ['billing_error', 'permission', false],
    ['permission_error', 'permission', false],
    ['not_found_error', 'not_found', false],
    ['request_too_large', 'context_overflow', false],
    ['rate_limit_error', 'rate_limited', true],
    ['timeout_error', 'timeout', true],
    ['conflict_error', 'server', true],
    ['api_error', 'server', true],
    ['overloaded_error', 'overloaded', true],
    ['toString', 'server', true],
  ])('%s is %s, retryable: %s', (type, failureClass, retryable) => {
    const failure = toStreamFailure({ type, message: 'Some words' })
    expect(failure).toMatchObject({ class: failureClass, retryable })
    expect(failure.message).toContain(`Anthropic broke the reply off (${type}): `)
  })
})
