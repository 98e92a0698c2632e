import { describe, expect, it } from 'vitest'
import { LedgerConflictError } from '../src/values/errors.ts'
import { describeDifference, formatLegibly } from '../src/values/text.ts'

const circle: { readonly name: string; self?: unknown } = { name: 'a' }
circle.self = circle
let deep: unknown = 'end'
for (let depth = 0; depth < 1_000; depth++) deep = [deep]

describe('formatLegibly', () => {
  it.each<[text: string, make: () => unknown]>([
    ['{"epoch":1,"seq":2}', () => ({ seq: 2, epoch: 1, gone: undefined })],
    ['{"events":[1,null,undefined],"seq":2n}', () => ({ seq: 2n, events: [1, null, undefined] })],
    ['undefined', () => undefined],
    ['NaN', () => Number.NaN],
    ['Symbol(seq)', () => Symbol('seq')],
    ['a function', () => () => 1],
    ['a Date of 5', () => new Date(5)],
    ['a Date of NaN', () => new Date('never')],
    ['a Map of [["a",{"b":1n}]]', () => new Map([['a', { b: 1n }]])],
    ['a Set of ["a"]', () => new Set(['a'])],
    ['a promise', () => Promise.resolve(1)],
    ['3 bytes', () => new Uint8Array(3)],
    ['RangeError: no disk', () => new RangeError('no disk')],
    [
      'LedgerConflictError: It was taken. (code ledger_conflict)',
      () => new LedgerConflictError('inbox', 'It was taken.'),
    ],
    ['{"name":"a","self":a circle}', () => circle],
    ['an object that cannot be read', () => new Proxy({}, { ownKeys: () => [1] as never })],
    ['{"seq":1}', () => Object.assign(Object.create(null) as object, { seq: 1 })],
  ])('shows %s', (text, make) => {
    expect(formatLegibly(make())).toBe(text)
  })

  it('ends, however deep and long the value is', () => {
    expect(formatLegibly(deep)).toBe(`${'['.repeat(30)}…${']'.repeat(30)}`)
    expect(formatLegibly('a'.repeat(10_000))).toBe(`"${'a'.repeat(299)} …`)
  })
})

describe('differenceOf', () => {
  it('shows two values from shortly before their first difference', () => {
    const same = 'a'.repeat(1_000)
    const difference = describeDifference({ text: `${same}b${same}` }, { text: `${same}c` })
    expect(difference?.found).toMatch(/^… a{60}ba{239} …$/)
    expect(difference?.expected).toMatch(/^… a{60}c"}$/)
  })

  it('takes JSON for the same that has its keys in another order, or fields without a value', () => {
    expect(describeDifference({ a: 1, b: 2 }, { b: 2, a: 1, c: undefined })).toBeUndefined()
    expect(describeDifference({ seq: 1n }, { seq: 1n })).toBeUndefined()
    expect(describeDifference({ seq: 1n }, { seq: 1 })).toEqual({
      found: '{"seq":1n}',
      expected: '{"seq":1}',
    })
    expect(describeDifference(undefined, { seq: 1 })).toEqual({ found: 'undefined', expected: '{"seq":1}' })
  })
})
