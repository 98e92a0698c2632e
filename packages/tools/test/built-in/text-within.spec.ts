import { describe, expect, it } from 'vitest'
import { decoded, textWithin } from '../../src/built-in/http-fetch/body.ts'

describe('a text within some bytes', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['é', 1, ''],
    ['aé', 2, 'a'],
    ['aé', 3, 'aé'],
    ['🪵b', 3, ''],
    // A text that fits is left as it is, also one that begins with a byte order mark.
    ['\uFEFFa', 4, '\uFEFFa'],
  ])('of %j in %i bytes is %j', (text, bytesMax, within) => {
    expect(textWithin(text, bytesMax)).toBe(within)
  })
})

describe('bytes as text', () => {
  const bytes = Uint8Array.of(0xe9)

  it.each([
    ['text/plain; charset=iso-8859-1', 'é'],
    ['text/plain; CHARSET="iso-8859-1"', 'é'],
    ['text/plain; charset=unheard-of', '\uFFFD'],
    ['text/plain', '\uFFFD'],
    [null, '\uFFFD'],
  ])('under %s', (contentType, text) => {
    expect(decoded(bytes, contentType)).toBe(text)
  })
})
