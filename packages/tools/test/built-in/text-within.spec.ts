import { describe, expect, it } from 'vitest'
import type { Response as HttpResponse } from 'undici'
import { decodePage, readBytes } from '../../src/built-in/http-fetch/exchange.ts'
import { readWithin } from '../../src/define/text.ts'

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
    expect(readWithin(text, bytesMax)).toBe(within)
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
    expect(decodePage(bytes, contentType)).toBe(text)
  })
})

describe('the first bytes of a body', () => {
  /** What is read of a body that arrives in these pieces, and how many of the pieces were taken from it. */
  async function readOf(pieces: readonly string[], bytesMax: number): Promise<readonly unknown[]> {
    let taken = 0
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          const piece = pieces[taken++]
          if (piece === undefined) controller.close()
          else controller.enqueue(Buffer.from(piece))
        },
      },
      { highWaterMark: 0 },
    )
    const { bytes, more } = await readBytes(new Response(body) as unknown as HttpResponse, bytesMax)
    return [bytes.toString(), more, taken]
  }

  it.each<readonly [pieces: readonly string[], text: string, more: boolean, taken: number]>([
    [['ab', 'c'], 'abc', false, 3],
    [['abc', 'd', 'e'], 'abc', true, 2],
    [['abcd', 'e'], 'abc', true, 1],
    [[], '', false, 1],
  ])('that comes as %j are %j', async (pieces, text, more, taken) => {
    expect(await readOf(pieces, 3)).toEqual([text, more, taken])
  })
})
