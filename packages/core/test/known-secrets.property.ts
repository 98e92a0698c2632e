import { Buffer } from 'node:buffer'
import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { createKnownSecrets, secretLengthMin } from '@tallystick/core/internal'
import { hostileTexts } from '@tallystick/testkit'

const struck = '[struck out]'
/** What a header may hold, as a key. */
const secret = fc.string({
  unit: fc.constantFrom(...'abcXYZ019-_.+/=~'.split('')),
  minLength: 12,
  maxLength: 60,
})
/** The text around it: nothing that could be part of it by chance. */
const around = fc.oneof(
  fc.constantFrom('', ' ', '"', 'ä', '<b>', '\n'),
  fc.constantFrom(...hostileTexts.map(({ text }) => text)),
)

const hex = (text: string): string => Buffer.from(text).toString('hex')
const percent = (text: string): string => hex(text).replaceAll(/../g, '%$&')

/** Every way in which a server may repeat what it was sent. */
const encodings: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'in capitals': (text) => text.toUpperCase(),
  'in small letters': (text) => text.toLowerCase(),
  'in Base64': (text) => Buffer.from(text).toString('base64'),
  'in Base64 for URLs': (text) => Buffer.from(text).toString('base64url'),
  'in Base64, with a name before it': (text) => Buffer.from(`user:${text}`).toString('base64'),
  'in Base64, after one byte': (text) => Buffer.from(`a${text}`).toString('base64'),
  'in Base64 for URLs, before one byte': (text) => Buffer.from(`${text}a`).toString('base64url'),
  'in Base64, within two others': (text) => Buffer.from(`ab${text}cd`).toString('base64'),
  'in hexadecimal': hex,
  'in capital hexadecimal': (text) => hex(text).toUpperCase(),
  'escaped for a URL': encodeURIComponent,
  'escaped for a URL, every character': percent,
  'escaped for a URL, after Base64': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  'as JSON': (text) => JSON.stringify(text),
  'as JSON with escaped slashes': (text) => JSON.stringify(text).replaceAll('/', '\\/'),
  'as JSON, every character escaped': (text) =>
    text.replaceAll(/./g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'as bytes of JavaScript': (text) => hex(text).replaceAll(/../g, '\\x$&'),
  'as entities of HTML': (text) => text.replaceAll(/./g, (character) => `&#${character.charCodeAt(0)};`),
  'as entities of HTML, in hexadecimal': (text) => hex(text).replaceAll(/../g, '&#x$&;'),
  'in lines': (text) => text.replaceAll(/.{8}/g, '$&\r\n '),
}

describe('a secret that is known', () => {
  it.each(Object.entries(encodings))('is found %s, and nothing beside it', (_how, encode) => {
    fc.assert(
      fc.property(secret, around, around, (key, before, behind) => {
        const known = createKnownSecrets([key])
        const text = known.struckFrom(`${before}${encode(key)}${behind}`, () => struck)
        const quote = encode(key).startsWith('"') ? '"' : ''
        // A character of Base64 that the secret shares with its neighbours tells at most five of its bits.
        expect(text).toContain(struck)
        expect(known.spansIn(text)).toEqual([])
        // A backslash in front of a quote or a slash is read as its escape.
        expect(text.startsWith(before.endsWith('\\') ? before.slice(0, -1) : before + quote)).toBe(true)
        expect(text.endsWith(quote + behind)).toBe(true)
        expect(text.length - before.length - behind.length).toBeLessThanOrEqual(struck.length + 16)
      }),
    )
  })

  it('is left alone where it is too short to be told from other words', () => {
    expect(createKnownSecrets(['2', 'acme']).spansIn('12.22 acme')).toEqual([])
    const shortest = 'x'.repeat(secretLengthMin)
    expect(createKnownSecrets([shortest]).spansIn(`a${shortest}b`)).toEqual([
      { start: 1, end: 1 + secretLengthMin },
    ])
  })

  it('is found in its longest form, of whose length it tells, and in none that is longer', () => {
    const known = createKnownSecrets(['abcdefgh'])
    const entities = (digits: number): string =>
      hex(hex('abcdefgh')).replaceAll(/../g, (byte) => `&#x${byte.padStart(digits, '0')};`)
    expect(entities(6)).toHaveLength(known.maxFormLength)
    expect(known.spansIn(entities(6))).toEqual([{ start: 0, end: known.maxFormLength }])
    expect(known.spansIn(entities(7))).toEqual([])
    expect(createKnownSecrets([]).maxFormLength).toBe(0)
  })

  it('is found as bytes, where it is not ASCII', () => {
    const key = 'schlüßel-€-𝄞'
    const known = createKnownSecrets([key])
    const forms = [
      key,
      Buffer.from(key).toString('latin1'),
      hex(key),
      encodeURIComponent(key),
      Buffer.from(key).toString('base64').replace(/.?=*$/, ''),
    ]
    for (const form of forms) expect(known.struckFrom(`<${form}>`, () => struck)).toBe(`<${struck}>`)
    // Half of a pair of surrogates is what encoders write for it.
    expect(createKnownSecrets(['\ud800-abcdef']).spansIn(hex('\ufffd-abcdef'))).toHaveLength(1)
  })

  it('is struck out to its last character where Base64 ends with it', () => {
    const known = createKnownSecrets(['abcdefghijkl'])
    const encoded = (before: string): string => Buffer.from(`${before}abcdefghijkl`).toString('base64')
    expect(known.struckFrom(encoded(''), () => struck)).toBe(struck)
    expect(known.struckFrom(encoded('abc'), () => struck)).toBe(`YWJj${struck}`)
    expect(known.struckFrom(`${encoded('')}QQ==`, () => struck)).toBe(`${struck}QQ==`)
  })

  it('is handed to the words in its place as it was found, once where it was given twice', () => {
    const known = createKnownSecrets(['abcdefgh', 'abcdefgh', 'xyzxyzxyz'])
    const found: string[] = []
    const text = known.struckFrom('1 ABCdefgh 2 xyzxyzxyz 3', (secret) => {
      found.push(secret)
      return '*'
    })
    expect(text).toBe('1 * 2 * 3')
    expect(found).toEqual(['ABCdefgh', 'xyzxyzxyz'])
  })

  it('is found once where another one is within it, and beside another one twice', () => {
    expect(createKnownSecrets(['abcdefghijkl', 'cdefghij']).spansIn('abcdefghijkl')).toEqual([
      { start: 0, end: 12 },
    ])
    expect(createKnownSecrets(['abcdefgh', 'ijklmnop']).spansIn('abcdefghijklmnop')).toEqual([
      { start: 0, end: 8 },
      { start: 8, end: 16 },
    ])
  })

  it('is found as often as it occurs, and with others that overlap it', () => {
    const known = createKnownSecrets(['abcdefgh', 'efghijkl'])
    expect(known.spansIn('abcdefgh ABCDEFGH abcdefghijkl')).toEqual([
      { start: 0, end: 8 },
      { start: 9, end: 17 },
      { start: 18, end: 30 },
    ])
  })
})
