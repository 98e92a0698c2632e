import canonicalize from 'canonicalize'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toCanonicalJson, computeDigest, type Json } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { isJson, isSameJson } from '../src/values/json.ts'

const isWellFormed = (value: unknown): boolean =>
  JSON.stringify(value).isWellFormed() && !/\\ud[89a-f]/.test(JSON.stringify(value))

/** JSON as a wire may carry it: any depth, odd keys, numbers at the edges. */
const json = fc.jsonValue({ noUnicodeString: false }).map((value) => value as Json)

describe('toCanonicalJson', () => {
  it('is what another implementation of RFC 8785 writes', () => {
    fc.assert(
      fc.property(json.filter(isWellFormed), (value) => {
        expect(toCanonicalJson(value)).toBe(canonicalize(value))
      }),
      { numRuns: tries(1_000) },
    )
  })

  it('writes any number as another implementation does', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(toCanonicalJson([value])).toBe(canonicalize([value]))
      }),
      { numRuns: tries(1_000) },
    )
  })

  it('reads back as what was written, and writes it again as the same text', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = toCanonicalJson(value)
        const read = JSON.parse(text) as Json
        expect(read).toEqual(JSON.parse(JSON.stringify(value)))
        expect(toCanonicalJson(read)).toBe(text)
      }),
    )
  })

  it('does not depend on the order in which fields were set', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), (object) => {
        const turned = Object.fromEntries(Object.entries(object).toReversed())
        expect(toCanonicalJson(turned)).toBe(toCanonicalJson(object))
        expect(computeDigest(turned)).toBe(computeDigest(object))
      }),
    )
  })
})

describe('isJson', () => {
  it('takes what toCanonicalJson can write, and nothing else', () => {
    const anything = fc.anything({ withBigInt: true, withSparseArray: true, withNullPrototype: true })
    const carried = (value: unknown): boolean => {
      try {
        toCanonicalJson(value as Json)
        return true
      } catch {
        return false
      }
    }
    fc.assert(
      fc.property(fc.oneof(json, anything), (value) => {
        expect(isJson(value)).toBe(carried(value))
      }),
      { numRuns: tries(1_000) },
    )
  })
})

describe('isSameJson', () => {
  /** A few values, so that two of them are often alike, and differ in one place where they are not. */
  const few = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Json>(null, true, false, 0, -0, 1, '', 'a', '0', '\ud800'),
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), fc.option(tie('value'), { nil: undefined })),
    ) as fc.Arbitrary<Json>,
  })).value

  it('says whether two values have one canonical text', () => {
    fc.assert(
      fc.property(fc.oneof(few, json), fc.oneof(few, json), (one, other) => {
        expect(isSameJson(one, other)).toBe(toCanonicalJson(one) === toCanonicalJson(other))
        expect(isSameJson(one, JSON.parse(toCanonicalJson(one)) as Json)).toBe(true)
      }),
      { numRuns: tries(1_000) },
    )
  })
})
