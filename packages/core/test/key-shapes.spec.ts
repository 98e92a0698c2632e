import { describe, expect, it } from 'vitest'
import { findKeys, withoutKeys } from '../src/values/secrets.ts'

/** How keys begin, by how many characters come after that at least. */
const beginnings: { readonly [least: number]: string } = {
  10: 'sk_live_ sk_test_ pk_live_ pk_test_ rk_live_ xoxa- xoxb- xoxe- xoxp- xoxr- xoxs-',
  12: 'sk- rk- pk-',
  16: 'gsk_ xai- ya29. pplx- tgp_v1_ csk- nvapi- glpat- AKIA ASIA',
  20: 'r8_ fw_ hf_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ dop_v1_ shpat_ pypi-',
  30: 'AIza npm_ SG.',
}
const found = (text: string): readonly string[] =>
  findKeys(text).map(({ start, end }) => text.slice(start, end))

describe('a key in a text', () => {
  it.each(
    Object.entries(beginnings).flatMap(([least, all]) =>
      all.split(' ').map((beginning) => [beginning, Number(least)] as const),
    ),
  )('that begins with %s has %i characters more at least', (beginning, least) => {
    const key = `${beginning}${'x'.repeat(least)}`
    expect(found(`use ${key}, please`)).toEqual([key])
    expect(found(`${key}y`)).toEqual([`${key}y`])
    expect(found(`use ${key.slice(0, -1)}, please`)).toEqual([])
  })

  it('holds dots where its service writes them, and no others', () => {
    for (const beginning of ['SG.', 'ya29.']) {
      const key = `${beginning}${'a'.repeat(22)}.bcdefghi`
      expect(found(`${key} j`)).toEqual([key])
    }
    expect(found(`sk-${'a'.repeat(12)}.bc`)).toEqual([`sk-${'a'.repeat(12)}`])
  })

  it('is not the end of a word, but may follow a capital, a digit or an escaped line break', () => {
    const key = `sk-${'a'.repeat(12)}`
    expect(found(`ta${key}`)).toEqual([])
    expect(found(`\\n${key}`)).toEqual([key])
    for (const before of ['A', '1', '_', '"', '']) expect(found(`${before}${key}`)).toEqual([key])
  })

  it('is a web token of three parts, each long enough', () => {
    const token = (first: string, second: string, rest = '.sig') => `eyJ${first}.${second}${rest}`
    expect(found(`a ${token('12345', '12345678')} b`)).toEqual([token('12345', '12345678')])
    expect(found(token('1234', '12345678'))).toEqual([])
    expect(found(token('12345', '1234567'))).toEqual([])
    expect(found(token('12345', '12345678', ''))).toEqual([])
    expect(found(token('12345', '12345678', '.'))).toEqual([token('12345', '12345678', '.')])
  })

  it('is found whole, however long it is', () => {
    for (const key of [`sk-${'a'.repeat(10_000_000)}`, `ya29.${'b'.repeat(10_000_000)}`]) {
      expect(findKeys(`${key} c`)).toEqual([{ start: 0, end: key.length }])
    }
    const token = `eyJ12345.12345678.${'c'.repeat(10_000_000)}`
    expect(findKeys(`${token}, d`)).toEqual([{ start: 0, end: token.length }])
  })

  it('is replaced, each by what is put in its place, and nothing else is', () => {
    const [one, other] = [`sk-${'a'.repeat(12)}`, `hf_${'b'.repeat(20)}`]
    const reported: string[] = []
    const text = withoutKeys(`x ${one} y ${other} z`, (key) => {
      reported.push(key)
      return '*'
    })
    expect(text).toBe('x * y * z')
    expect(reported).toEqual([one, other])
    expect(withoutKeys('nothing', () => '*')).toBe('nothing')
  })
})
