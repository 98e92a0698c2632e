import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { copyInput } from '../src/define/input-issues.ts'

/** Every object and array within a value, itself included. */
function objectsIn(value: unknown): readonly object[] {
  return typeof value === 'object' && value !== null
    ? [value, ...Object.values(value).flatMap((field: unknown) => objectsIn(field))]
    : []
}

it('the copy of an input is the one that structuredClone makes, and shares nothing with it', () => {
  const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)
  const special = fc.constantFrom<unknown>(
    JSON.parse('{"__proto__": {"polluted": true}, "a": [{"__proto__": 1}]}'),
    { at: new Date(5), list: new Map([[1, new Set([2])]]), gap: undefined },
    [undefined, -0, 1n, new Uint8Array([1, 2])],
  )
  fc.assert(
    fc.property(fc.oneof({ weight: 9, arbitrary: json }, special), (value) => {
      const copy = copyInput(value)
      expect(copy).toStrictEqual(structuredClone(value))
      expect(Object.keys(Object(copy) as object)).toEqual(Object.keys(Object(value) as object))
      const originals = new Set(objectsIn(value))
      for (const object of objectsIn(copy)) expect(originals.has(object)).toBe(false)
    }),
    { numRuns: tries(300) },
  )
})
