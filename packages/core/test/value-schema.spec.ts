import { describe, expect, it } from 'vitest'
import {
  amount,
  count,
  flag,
  json,
  jsonObject,
  objectOf,
  maybe,
  ordinal,
  type Schema,
  text,
} from '../src/values/schema.ts'
import { isJson } from '../src/values/json.ts'

const kinds: Readonly<Record<string, Schema>> = { text, flag, amount, ordinal, count, json, jsonObject }

/** An object within an object, so often. */
function nested(depth: number): object {
  let value: object = {}
  for (let level = 1; level < depth; level++) value = { value }
  return value
}

describe('a value that an event may hold', () => {
  it.each<readonly [string, readonly unknown[], readonly unknown[]]>([
    ['text', ['', 'a'], [1, null, undefined]],
    ['flag', [true, false], [0, 'true', null]],
    ['amount', [0, -1.5, 1e300], [Infinity, Number.NaN, '1', null]],
    ['ordinal', [1, 2], [0, -1, 1.5, '1']],
    ['count', [0, 1], [-1, 0.5, null]],
    [
      'json',
      [null, 'a', 1, true, [], {}, { a: [null] }, { a: undefined }],
      [undefined, Number.NaN, () => 1, [undefined], { a: 1n }],
    ],
    [
      'jsonObject',
      [{}, { a: 1 }, { a: undefined }],
      [null, [], 'a', 1, undefined, { a: () => 1 }, { a: [Infinity] }],
    ],
  ])('as %s is one of its kind', (kind, taken, refused) => {
    expect(taken.filter((value) => kinds[kind]?.(value) !== undefined)).toEqual([])
    expect(refused.filter((value) => kinds[kind]?.(value) === undefined)).toEqual([])
  })

  it('is nested as deep as every store can read, and no deeper', () => {
    expect([nested(500), nested(501)].map(isJson)).toEqual([true, false])
    // What is at the bottom counts for nothing more.
    expect(isJson([nested(499)])).toBe(true)
  })

  it('is named where it is at fault, and not shown', () => {
    const shape = objectOf<{ readonly a: string; readonly b?: number }>({
      ...{ a: text, b: maybe(amount) },
    })
    const list = objectOf<{ readonly list: { readonly a: string; readonly b?: number } }>({ list: shape })
    expect(shape({ a: 'a', c: 1 })).toBeUndefined()
    expect(shape({ a: 'a', b: undefined })).toMatchObject({ path: 'b' })
    expect(list({ list: { a: 1 } })).toMatchObject({ path: 'list.a' })
    expect(shape('sk-secret')).toEqual({
      path: '',
      what: expect.not.stringContaining('sk-secret'),
    })
  })
})
