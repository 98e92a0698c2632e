import { describe, expect, it } from 'vitest'
import { newSalt, saltBytes } from '../src/record/salts.ts'

describe('a new salt', () => {
  it('is unlike all others, of its full length, and stays as it is while others are made', () => {
    const salts = Array.from({ length: 2_000 }, () => newSalt())
    const texts = salts.map((salt) => Buffer.from(salt).toString('hex'))
    expect(new Set(texts).size).toBe(2_000)
    expect(new Set(salts.map(({ length }) => length))).toEqual(new Set([saltBytes]))
    expect(texts.filter((text) => /^0+$/.test(text))).toEqual([])
    for (const _ of salts) newSalt()
    expect(salts.map((salt) => Buffer.from(salt).toString('hex'))).toEqual(texts)
  })
})
