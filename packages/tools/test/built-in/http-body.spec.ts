// How the body of an answer is read: which types are shown, in which character set, and how much of it.
import { describe, expect, it } from 'vitest'
import {
  decodePage,
  defaultContentTypes,
  isPage,
  isShown,
  readPageType,
  readBytes,
} from '../../src/built-in/http-fetch/exchange.ts'

describe('a media type', () => {
  it.each([
    ['text/csv', true],
    ['TEXT/Plain ; charset=utf-8', true],
    ['application/json', true],
    ['application/problem+json', true],
    ['application/x-ndjson', true],
    ['application/xml', true],
    ['image/svg+xml', false],
    ['application/atom+xml', true],
    ['application/yaml', true],
    ['application/jsonx', false],
    ['application/pdf', false],
    ['', false],
    [null, true],
  ])('%j is shown: %j', (type, shown) => {
    expect(isShown(type, defaultContentTypes)).toBe(shown)
  })

  it.each([
    ['text/html; charset=utf-8', true],
    ['application/xhtml+xml', true],
    ['text/plain', false],
    [null, false],
  ])('%j is that of a page: %j', (type, page) => {
    expect(isPage(type)).toBe(page)
  })
})

describe('the character set of a page', () => {
  const typeOf = (page: string, type: string | null = 'text/html') => readPageType(Buffer.from(page), type)
  it.each([
    ['<META CHARSET="Latin1">', 'text/html; charset=latin1'],
    ["<meta http-equiv=x content='text/html; charset = l1'>", 'text/html; charset=l1'],
    ['<meta charset=one><meta charset=two>', 'text/html; charset=one'],
    ['charset=one<meta charset=two>', 'text/html; charset=two'],
    ['<meta name=a>', 'text/html'],
    [`${' '.repeat(1_004)}<meta charset=latin1>`, 'text/html; charset=latin1'],
    [`${' '.repeat(1_005)}<meta charset=latin1>`, 'text/html; charset=latin'],
  ])('that %j names', (page, type) => {
    expect(typeOf(page)).toBe(type)
  })

  it('is that of its server, where it names one', () => {
    expect(typeOf('<meta charset=latin1>', 'text/html; Charset=utf-8')).toBe('text/html; Charset=utf-8')
    expect(typeOf('<meta charset=latin1>', null)).toBe('; charset=latin1')
    expect(typeOf('', null)).toBe('')
  })
})

describe('a text', () => {
  it.each([
    ['text/plain; charset=iso-8859-1', 'é'],
    ['text/plain; charset="iso-8859-1"', 'é'],
    ['text/plain; charset=unknown', '\ufffd'],
    ['text/plain', '\ufffd'],
    [null, '\ufffd'],
  ])('of type %j is decoded', (type, text) => {
    expect(decodePage(Uint8Array.from([0xe9]), type)).toBe(text)
  })
})

describe('the bytes of a body', () => {
  /** Reads so many bytes of a body of three pieces, and says how many of them were asked for. */
  async function reading(maxBytes: number) {
    let given = 0
    const pieces = async function* () {
      for (const piece of ['ab', 'cd', 'ef']) {
        given++
        yield Buffer.from(piece)
      }
    }
    const { bytes, more } = await readBytes({ body: pieces() } as never, maxBytes)
    return [bytes.toString(), more, given]
  }

  it('are read as far as is asked for', async () => {
    expect(await reading(6)).toEqual(['abcdef', false, 3])
    expect(await reading(5)).toEqual(['abcde', true, 3])
    expect(await reading(3)).toEqual(['abc', true, 2])
    expect(await reading(1)).toEqual(['a', true, 1])
    expect(await readBytes({ body: null } as never, 5)).toEqual({ bytes: Buffer.alloc(0), more: false })
  })
})
