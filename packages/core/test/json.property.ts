import canonicalize from 'canonicalize'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson, digestOf, type Json } from '@tallystick/core/vocabulary'
import { tries } from '../../../scripts/testing/effort.ts'
import { isJson } from '../src/vocabulary/values/json.ts'

const isWellFormed = (value: unknown): boolean =>
  JSON.stringify(value).isWellFormed() && !/\\ud[89a-f]/.test(JSON.stringify(value))

/** JSON as a wire may carry it: any depth, odd keys, numbers at the edges. */
const json = fc.jsonValue({ noUnicodeString: false }).map((value) => value as Json)

describe('canonicalJson', () => {
  it('is what another implementation of RFC 8785 writes', () => {
    fc.assert(
      fc.property(json.filter(isWellFormed), (value) => {
        expect(canonicalJson(value)).toBe(canonicalize(value))
      }),
      { numRuns: tries(1_000) },
    )
  })

  it('writes any number as another implementation does', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(canonicalJson([value])).toBe(canonicalize([value]))
      }),
      { numRuns: tries(1_000) },
    )
  })

  it('reads back as what was written, and writes it again as the same text', () => {
    fc.assert(
      fc.property(json, (value) => {
        const text = canonicalJson(value)
        const read = JSON.parse(text) as Json
        expect(read).toEqual(JSON.parse(JSON.stringify(value)))
        expect(canonicalJson(read)).toBe(text)
      }),
    )
  })

  it('does not depend on the order in which fields were set', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), (object) => {
        const turned = Object.fromEntries(Object.entries(object).toReversed())
        expect(canonicalJson(turned)).toBe(canonicalJson(object))
        expect(digestOf(turned)).toBe(digestOf(object))
      }),
    )
  })
})

describe('isJson', () => {
  it('takes what canonicalJson can write, and nothing else', () => {
    const anything = fc.anything({ withBigInt: true, withSparseArray: true, withNullPrototype: true })
    const carried = (value: unknown): boolean => {
      try {
        canonicalJson(value as Json)
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
