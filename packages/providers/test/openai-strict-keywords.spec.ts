import type { JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { fitSchema, isAnswerSchema } from '../src/openai/tools.ts'

const text = { type: 'string' }
const object = (properties: JsonObject, required = Object.keys(properties)): JsonObject => ({
  ...{ type: 'object', properties, required },
})
const words = (list: string): readonly string[] => list.trim().split(/\s+/)

describe('a strict schema', () => {
  const inside = (schema: JsonObject): unknown => {
    const { schema: fitted, strict, notes } = fitSchema(object({ x: schema }))
    return strict ? [(fitted['properties'] as JsonObject)['x'], notes] : 'not strict'
  }

  it.each(
    words(`title description enum const pattern minLength maxLength multipleOf minimum maximum exclusiveMinimum
      exclusiveMaximum minItems maxItems`),
  )('keeps %s', (keyword) => {
    const schema = { type: 'string', [keyword]: 1 }
    expect(inside(schema)).toEqual([schema, []])
  })

  it.each(words('$schema $id $comment default examples deprecated readOnly writeOnly allOf $ref'))(
    'loses %s without a note',
    (keyword) => {
      expect(inside({ type: 'string', [keyword]: 1 })).toEqual([text, []])
    },
  )

  it.each(words('patternProperties $dynamicRef $recursiveRef $anchor $dynamicAnchor'))(
    'cannot be without %s',
    (keyword) => {
      expect(inside({ type: 'string', [keyword]: 'x' })).toBe('not strict')
    },
  )

  it.each(words('date-time time date duration email hostname ipv4 ipv6 uuid'))(
    'keeps the format %s',
    (format) => {
      expect(inside({ type: 'string', format })).toEqual([{ type: 'string', format }, []])
    },
  )

  it('is as deep as ten levels, by properties, items and choices', () => {
    const nested = (levels: number, wrap: (inner: JsonObject) => JsonObject): JsonObject =>
      levels === 0 ? text : wrap(nested(levels - 1, wrap))
    const wraps = [
      (inner: JsonObject) => object({ x: inner }),
      (inner: JsonObject) => ({ type: 'array', items: inner }),
      (inner: JsonObject) => ({ anyOf: [inner] }),
    ]
    for (const wrap of wraps) {
      const strict = [9, 10].map((levels) => fitSchema(object({ x: nested(levels, wrap) })).strict)
      expect(strict).toEqual([true, false])
      const within = [9, 10].map((levels) => {
        const $defs = { node: nested(levels, wrap) }
        return fitSchema({ ...object({ x: { $ref: '#/$defs/node' } }), $defs }).strict
      })
      expect(within).toEqual([true, false])
    }
  })

  it('has 5000 properties, and no more', () => {
    const wide = (count: number): JsonObject =>
      object(Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, text])))
    expect(fitSchema(wide(5000)).strict).toBe(true)
    expect(fitSchema(wide(5001))).toMatchObject({
      ...{ strict: false, notes: ['not strict: more than 5000 properties'] },
    })
  })

  it('may be of several types, and a choice may have one object whose properties may be left out', () => {
    const closed = { properties: { a: text }, required: ['a'], additionalProperties: false }
    expect(inside({ ...object({ a: text }), type: ['object', 'null'] })).toEqual([
      { type: ['object', 'null'], ...closed },
      [],
    ])
    expect(inside({ type: ['array', 'null'], items: text })).toEqual([
      { type: ['array', 'null'], items: text },
      [],
    ])
    const optional = {
      type: 'object',
      properties: { a: { anyOf: [text, { type: 'null' }] } },
      required: ['a'],
    }
    expect(inside({ anyOf: [object({ a: text }, []), text] })).toEqual([
      { anyOf: [{ ...optional, additionalProperties: false }, text] },
      [],
    ])
    expect(inside({ anyOf: [object({ a: text }), object({ b: text }, [])] })).toBe('not strict')
    expect(inside({ anyOf: [object({ a: text }), object({ b: text })] })).not.toBe('not strict')
    expect([{ enum: ['a'] }, { const: 1 }].map(inside)).toEqual([
      [{ enum: ['a'] }, []],
      [{ const: 1 }, []],
    ])
    expect(inside({ anyOf: [text], oneOf: [{ const: 1 }] })).toEqual([{ anyOf: [text] }, []])
  })

  it('may have definitions under either name, also beside a reference', () => {
    for (const keyword of ['$defs', 'definitions']) {
      const $ref = `#/${keyword}/a`
      const fitted = fitSchema({ ...object({ x: { $ref } }), [keyword]: { a: { ...text, format: 'uri' } } })
      expect(fitted).toMatchObject({ strict: true, schema: { [keyword]: { a: text } } })
      expect(fitted.notes).toEqual([`format uri at #/${keyword}/a was left out`])
      expect(inside({ $ref, [keyword]: { a: text }, title: 'gone' })).toEqual([
        { $ref, [keyword]: { a: text } },
        [],
      ])
    }
  })

  it.each([{ anyOf: [] }, { oneOf: [] }, { $ref: '#' }, { type: 'string' }])(
    'is at its root a plain object: not %j',
    (root) => {
      expect(fitSchema({ properties: {}, ...root })).toMatchObject({
        ...{ strict: false, notes: ['not strict: its root is not a plain object'] },
      })
    },
  )

  it('of an answer is one of an object, and no choice', () => {
    expect([{}, { type: 'object' }, { properties: {} }].map(isAnswerSchema)).toEqual([true, true, true])
    const others = [...words('anyOf oneOf allOf $ref enum const').map((key) => ({ [key]: 1 })), text]
    expect(others.filter(isAnswerSchema)).toEqual([])
  })
})
