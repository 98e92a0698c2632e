import { describe, expect, it } from 'vitest'
import { canonicalJson } from '@tallystick/core/vocabulary'

describe('canonicalJson', () => {
  it('orders keys by code unit and leaves out undefined', () => {
    expect(canonicalJson({ b: 1, a: [true, null, 'x'], é: undefined as never, A: { z: 1e21, y: -0 } })).toBe(
      '{"A":{"y":0,"z":1e+21},"a":[true,null,"x"],"b":1}',
    )
  })
  it('keeps a lone surrogate as an escape', () => {
    expect(canonicalJson('\ud800')).toBe('"\\ud800"')
  })
  it('names the place of what JSON cannot carry', () => {
    expect(() => canonicalJson({ a: [1, Number.NaN] })).toThrow('$.a[1] is NaN')
  })
})
