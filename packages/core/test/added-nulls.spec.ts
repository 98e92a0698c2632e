import { describe, expect, it } from 'vitest'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { acceptsNull, withoutAddedNulls } from '../src/events/answer-schema.ts'

describe('a schema that allows null', () => {
  const again = { $ref: '#/$defs/again' }
  const root = {
    $defs: {
      maybe: { type: ['string', 'null'] },
      text: { type: 'string' },
      again: { anyOf: [again, again] },
    },
  }

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
    // A choice between itself and itself leads nowhere.
    [again, false],
    [{ anyOf: [again, { type: 'null' }] }, true],
  ])('%j: %s', (schema, isAllowed) => {
    expect(acceptsNull(schema, root)).toBe(isAllowed)
  })
})

/** An object with one property `a`, which may be left out. */
const withA = (a: Json, more: JsonObject = {}): JsonObject => ({ type: 'object', properties: { a }, ...more })
const text = { type: 'string' }
const part = withA(text)
const [filled, empty] = [{ a: 'x' }, { a: null }]

/** A schema whose property `a` is found after so many references. */
function behindReferences(count: number): JsonObject {
  const $defs: Record<string, Json> = { 'step-1': part }
  for (let step = 2; step <= count; step++) $defs[`step-${step}`] = { $ref: `#/$defs/step-${step - 1}` }
  return { $ref: `#/$defs/step-${count}`, $defs }
}

describe('a null that stands for a property which was left out', () => {
  it.each<readonly [string, JsonObject, Json, Json]>([
    ['is taken away', part, { a: null, b: null }, { b: null }],
    [
      'stays where the schema says that the property may be null',
      withA({ type: ['string', 'null'] }),
      empty,
      empty,
    ],
    ['stays where the property is required', withA(text, { required: ['a'] }), empty, empty],
    ['is taken away where another property is required', withA(text, { required: ['b'] }), empty, {}],
    ['stays where the schema describes no properties', { type: 'object' }, empty, empty],
    [
      'stays where what it calls properties are none',
      { type: 'object', properties: [text] },
      { 0: null },
      { 0: null },
    ],
    ['stays under a name that every object has', part, { toString: null }, { toString: null }],
    ['is taken away in an inner object', withA(part), { a: { a: null } }, { a: {} }],
    ['is taken away in the items of a list', { type: 'array', items: part }, [filled, empty], [filled, {}]],
    ['stays as an item of a list', { type: 'array', items: text }, [null], [null]],
    ['stays where the schema says nothing of the items', { type: 'array' }, [empty], [empty]],
    [
      'is found under a reference',
      withA({ $ref: '#/$defs/part' }, { $defs: { part } }),
      { a: empty },
      { a: {} },
    ],
    ['is found under a reference to the root', withA({ $ref: '#' }), { a: empty }, { a: {} }],
    [
      'is found under a reference with escaped characters',
      withA({ $ref: '#/$defs/a~1b~0c' }, { $defs: { 'a/b~c': part } }),
      { a: empty },
      { a: {} },
    ],
    [
      'stays under a reference that leads nowhere',
      withA({ $ref: '#/$defs/part' }),
      { a: empty },
      { a: empty },
    ],
    [
      'stays under a reference to what every object has',
      withA({ $ref: '#/$defs/constructor' }, { $defs: {} }),
      { a: empty },
      { a: empty },
    ],
    ['is found under the one choice beside null', { anyOf: [part, { type: 'null' }] }, empty, {}],
    [
      'is found under the one choice beside null, told as a constant',
      { oneOf: [{ const: null }, part] },
      empty,
      {},
    ],
    ['is found under a single part', { allOf: [part] }, empty, {}],
    ['stays where there are several choices', { anyOf: [part, withA({ type: 'number' })] }, empty, empty],
    ['is taken away beside several choices', { ...part, anyOf: [{ required: ['b'] }, {}] }, empty, {}],
    ['is found after 20 references', behindReferences(20), empty, {}],
    ['stays after more', behindReferences(21), empty, empty],
    ['stays under a reference to itself', { $ref: '#' }, empty, empty],
    ['stays under a choice of itself', { anyOf: [{ $ref: '#' }, { $ref: '#' }] }, empty, empty],
    ['stays where nothing else is allowed', { anyOf: [{ type: 'null' }] }, empty, empty],
    ['stays under a single choice of itself', { anyOf: [{ $ref: '#' }] }, empty, empty],
    ['stays where the schema of the property is none', withA(null), empty, empty],
    ['is not looked for in a text', part, 'null', 'null'],
    ['stays where it is all there is', part, null, null],
  ])('%s', (_what, schema, value, left) => {
    expect(withoutAddedNulls(schema, value)).toStrictEqual(left)
  })

  it('is taken away within a property of any name, which stays a field', () => {
    const value = JSON.parse('{"__proto__":{"a":null},"a":null}') as Json
    const properties = JSON.parse(
      '{"__proto__":{"type":"object","properties":{"a":{"type":"string"}}}}',
    ) as JsonObject
    const left = withoutAddedNulls({ type: 'object', properties: { ...properties, a: text } }, value)
    expect(JSON.stringify(left)).toBe('{"__proto__":{}}')
  })
})
