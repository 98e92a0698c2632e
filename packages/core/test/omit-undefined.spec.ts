import { expect, it } from 'vitest'
import { getOwn, omitUndefined } from '../src/values/json.ts'

it('fields that hold something are kept as plain fields, under any name, and others are left out', () => {
  const given = JSON.parse('{"a":1,"__proto__":{"b":2},"c":null,"d":false,"e":0,"f":""}') as object
  const kept = omitUndefined({ ...given, left: undefined })
  expect(JSON.stringify(kept)).toBe('{"a":1,"__proto__":{"b":2},"c":null,"d":false,"e":0,"f":""}')
  expect(Object.getPrototypeOf(kept)).toBe(Object.prototype)
  const plain = { enumerable: true, writable: true, configurable: true }
  expect(Object.getOwnPropertyDescriptor(kept, '__proto__')).toEqual({ value: { b: 2 }, ...plain })
  expect(Object.getOwnPropertyDescriptor(kept, 'c')).toEqual({ value: null, ...plain })
  expect(omitUndefined(Object.create({ inherited: 1 }) as object)).toEqual({})
  expect(omitUndefined({ ['__proto__']: undefined })).toEqual({})
})

it('a key is found where the record itself has it, and not where every object has it', () => {
  expect([getOwn({ a: 1 }, 'a'), getOwn({ a: 1 }, 'b')]).toEqual([1, undefined])
  expect(getOwn<unknown>({}, 'constructor')).toBeUndefined()
  expect(getOwn<unknown>({ toString: 1 }, 'toString')).toBe(1)
})
