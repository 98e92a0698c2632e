import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hostileTexts } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { SecretMask } from '../src/secrets.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const mask = new SecretMask()

const words = fc.oneof(
  fc.string(),
  anyText().map((text) => text.toWellFormed()),
  fc.constantFrom('password: hunter2 and', 'a "password":"x"', 'Bearer abcdefghijk', 'Cookie: a=b; c'),
  fc.constantFrom('x\npassword: "abc" d', 'token=read()', 'api_key=12345', 'say "no"\\n'),
)
const leaf = fc.oneof(words, fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean())
const name = fc.constantFrom('password', 'db_password', 'token', 'note', 'apiKey', 'tokens', 'a')
const fields = fc.dictionary(name, fc.oneof(leaf, fc.constant(null), fc.array(leaf)))
const input = fc.dictionary(name, fc.oneof(leaf, fields, fc.array(leaf)))

describe('an input of a tool', () => {
  it('is masked alike in streamed text and as a value', () => {
    fc.assert(
      fc.property(input, (given) => {
        const value = JSON.parse(JSON.stringify(given)) as object
        const text = mask.text(JSON.stringify(value))
        expect(text).toHaveLength(JSON.stringify(value).length)
        expect(JSON.parse(text)).toEqual(mask.value(value))
      }),
      { numRuns: tries(2_000) },
    )
  })

  it('is masked alike whatever escapes a model writes in it', () => {
    const escaped =
      '{"db_password":"\\u0068unter\\u000a2 \\ud83d\\ude00","list":[1],"token":["a\\tb",["c"],7,null]}'
    const text = mask.text(escaped)
    expect(text).toHaveLength(escaped.length)
    expect(JSON.parse(text)).toEqual(mask.value(JSON.parse(escaped)))
    expect(text).not.toMatch(/unter|a\\tb|"c"/)
  })

  it('holds hostile texts of a secret name, of which nothing is left', () => {
    for (const { text } of hostileTexts.filter(({ text: each }) => each.trim().length > 8)) {
      const masked = mask.text(JSON.stringify({ password: text }))
      expect(masked).not.toContain(JSON.stringify(text).slice(1, -1))
      expect(JSON.parse(masked)).toEqual(mask.value({ password: text }))
    }
  })
})
