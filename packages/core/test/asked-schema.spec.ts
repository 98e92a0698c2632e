import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { readAnswers, toAskedSchema } from '../src/events/answer-schema.ts'

const text = { type: 'string' }
const object = { type: 'object', properties: { a: text } }

/** What a model is asked for where the answer itself is not an object. */
const wrapping = (answer: Json, more: JsonObject = {}): JsonObject => ({
  ...{ type: 'object', properties: { answer }, required: ['answer'], additionalProperties: false },
  ...more,
})

describe('the schema that a model is asked for', () => {
  it.each<readonly [string, JsonObject]>([
    ['a type', object],
    ['a type and no properties', { type: 'object' }],
    ['properties and no type', { properties: { a: text } }],
  ])('is that of the answer, if the answer is an object by %s', (_by, schema) => {
    expect(toAskedSchema(schema)).toEqual({ schema })
  })

  it.each<readonly [string, JsonObject]>([
    ['a list', { type: 'array', properties: {} }],
    ['an object or null', { type: ['object', 'null'] }],
    ['anything', {}],
    ['one of some', { ...object, anyOf: [{ required: ['a'] }, {}] }],
    ['exactly one of some', { ...object, oneOf: [{ required: ['a'] }, {}] }],
    ['all of some', { ...object, allOf: [{ required: ['a'] }] }],
    ['what a reference names', { ...object, $ref: 'https://acme.example/schema' }],
    ['one of some values', { ...object, enum: [{ a: 'x' }] }],
    ['one value', { ...object, const: { a: 'x' } }],
    ['anything but', { ...object, not: { required: ['a'] } }],
    ['one thing or another', { ...object, if: { required: ['a'] } }],
  ])('is that of an object with one field, if the answer is %s', (_what, schema) => {
    expect(toAskedSchema(schema)).toEqual({ wrapped: true, schema: wrapping(schema) })
  })

  it('keeps definitions of either name at the root, and references to them as they are', () => {
    const items = { anyOf: [{ $ref: '#/$defs/a' }, { $ref: '#/definitions/b' }, { $ref: 'other.json' }] }
    const definitions = { $defs: { a: text }, definitions: { b: text } }
    expect(toAskedSchema({ type: 'array', items, ...definitions }).schema).toEqual(
      wrapping({ type: 'array', items }, definitions),
    )
    expect(toAskedSchema({ type: 'array', items, definitions: { b: text } }).schema).toEqual(
      wrapping({ type: 'array', items }, { definitions: { b: text } }),
    )
  })

  it.each([
    ['#', '#/$defs/answer'],
    ['#/items', '#/$defs/answer/items'],
    ['#/$defs', '#/$defs/answer/$defs'],
  ])('leads the reference %s to where the answer has moved', (from, to) => {
    const schema = { type: 'array', items: { anyOf: [text, { properties: { a: { $ref: from } } }] } }
    const moved = { type: 'array', items: { anyOf: [text, { properties: { a: { $ref: to } } }] } }
    expect(toAskedSchema(schema).schema).toEqual(
      wrapping({ $ref: '#/$defs/answer' }, { $defs: { answer: moved } }),
    )
  })

  it('keeps what only looks like a reference', () => {
    const schema = {
      ...{ type: 'array', description: '#', default: null },
      items: { ...text, enum: ['#', '#/items', null], default: null },
    }
    expect(toAskedSchema(schema).schema).toEqual(wrapping(schema))
  })

  it('moves references of definitions, and of no property that is called $ref', () => {
    const schema = {
      ...{ type: 'array', items: { properties: { $ref: { type: 'array', items: { $ref: '#/$defs/a' } } } } },
      $defs: { a: { items: { $ref: '#' } }, answer: text },
    }
    const { $defs: _definitions, ...own } = schema
    expect(toAskedSchema(schema).schema).toEqual(
      wrapping(
        { $ref: '#/$defs/answer_' },
        { $defs: { a: { items: { $ref: '#/$defs/answer_' } }, answer: text, answer_: own } },
      ),
    )
  })
})

describe('the JSON of a reply', () => {
  const list = toAskedSchema({ type: 'array', items: object })

  it.each<readonly [string, Json, readonly Json[]]>([
    ['in its object', { answer: [{ a: 'x' }] }, [[{ a: 'x' }], { answer: [{ a: 'x' }] }]],
    ['as it is', [{ a: 'x' }], [[{ a: 'x' }]]],
    ['as it is, null', null, [null]],
    ['as it is, a text', 'x', ['x']],
    ['as it is, an object without the field', {}, [{}]],
    ['as it is, an object with more fields', { answer: [], more: 1 }, [{ answer: [], more: 1 }]],
    ['as it is, an object with another field', { answers: [] }, [{ answers: [] }]],
    ['in its object, without added nulls', { answer: [{ a: null }] }, [[{}], { answer: [{ a: null }] }]],
    ['as it is, without added nulls', [{ a: null }], [[{}]]],
  ])('may be the answer %s', (_how, value, answers) => {
    expect(readAnswers(list, value)).toStrictEqual(answers)
  })

  it('is the answer itself where an object was asked for, without added nulls', () => {
    const asked = toAskedSchema(object)
    expect(readAnswers(asked, { a: null })).toStrictEqual([{}])
    expect(readAnswers(asked, { answer: 'x' })).toStrictEqual([{ answer: 'x' }])
  })
})
