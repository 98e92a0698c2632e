import type * as client from '@modelcontextprotocol/client'
import { createKnownSecrets } from '@tallystick/core/internal'
import type { JsonObject, ResultPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { toParts, toResultContent, type ResultReading } from '../../src/mcp/result.ts'

const reading = (bounds: Partial<ResultReading> = {}): ResultReading => ({
  ...{ secrets: createKnownSecrets([]), maxCharacters: 1_000, maxBinaryCharacters: 1_000 },
  ...bounds,
})

const text = (of: string): client.ContentBlock => ({ type: 'text', text: of })
const image = (data: string): client.ContentBlock => ({ type: 'image', data, mimeType: 'image/png' })

/** What a model reads of parts; a picture as its characters of Base64. */
function read(parts: readonly ResultPart[]): readonly string[] {
  return parts.map((part) => {
    if (part.type === 'text') return part.text
    return 'data' in part ? `${part.type} ${part.data.length}` : part.type
  })
}

const blocks = (given: readonly client.ContentBlock[], bounds?: Partial<ResultReading>): readonly string[] =>
  read(toParts(given, reading(bounds)))

async function answer(
  said: readonly string[],
  structuredContent: JsonObject | undefined,
  { isError, outputSchema }: { readonly isError?: boolean; readonly outputSchema?: JsonObject } = {},
): Promise<readonly string[]> {
  const result = { content: said.map(text), structuredContent, isError } as client.CallToolResult
  return read(await toResultContent(result, outputSchema, reading()))
}

describe('the texts of an answer', () => {
  it('given more than may be shown, when they are read, then what is over is cut off and counted, over all of them', () => {
    expect(blocks([text('12345'), text('67890')], { maxCharacters: 10 })).toEqual(['12345', '67890'])
    expect(blocks([text('12345'), text('678901')], { maxCharacters: 10 })).toEqual([
      '12345',
      '67890\n(1 characters were left out: ask for less, or for a part.)',
    ])
    expect(blocks([text('1234567890'), text('no more'), image('aGVsbG8=')], { maxCharacters: 10 })).toEqual([
      '1234567890',
      'image 8',
    ])
    expect(blocks([text(''), text('a')])).toEqual(['a'])
  })

  it('given a character of two halves at the end, when they are cut, then no half is left', () => {
    expect(blocks([text('1234😀')], { maxCharacters: 5 })).toEqual([
      '1234\n(1 characters were left out: ask for less, or for a part.)',
    ])
    expect(blocks([text('123😀5')], { maxCharacters: 5 })).toEqual([
      '123😀\n(1 characters were left out: ask for less, or for a part.)',
    ])
    expect(blocks([text('a\ud800b')])).toEqual(['a\ufffdb'])
  })

  it('given a secret at the border, when they are cut, then no part of it is left', () => {
    const secrets = createKnownSecrets(['swordfish-0123456789'])
    for (let before = 0; before < 30; before++) {
      const said = `${'-'.repeat(before)}swordfish-0123456789${'-'.repeat(40)}`
      const [shown = ''] = blocks([text(said)], { maxCharacters: 25, secrets })
      expect(shown).not.toMatch(/swor|6789/)
      expect(shown).toContain(`\n(${said.length - 25} characters were left out`)
    }
  })

  it('given a secret that is repeated, when they are cut, then no part of it is left, though each makes them shorter', () => {
    const secrets = createKnownSecrets(['swordfish-0123456789'])
    const said = 'swordfish-0123456789 '.repeat(400)
    for (let maxCharacters = 1_000; maxCharacters < 1_030; maxCharacters++) {
      const [shown = ''] = blocks([text(said)], { maxCharacters, secrets })
      expect(shown).toMatch(/^(\[secret\] )+\[?[secrt]*\]?\n\(/)
    }
  })

  it('given a secret that they do not hold, when they are a little too long, then as much is left as may be shown', () => {
    const secrets = createKnownSecrets(['swordfish-0123456789'])
    for (const over of [1, 30, 3_000]) {
      const [shown = ''] = blocks([text('-'.repeat(25 + over))], { maxCharacters: 25, secrets })
      expect(shown.split('\n')[0]).toBe('-'.repeat(25))
    }
  })
})

describe('the pictures and files of an answer', () => {
  it('given more than may be taken, when they are read, then one that is too large is left out, and a smaller one is not', () => {
    const large = 'aGVs'.repeat(3)
    expect(blocks([image('aGVsbG8='), image(large), image('aGVs')], { maxBinaryCharacters: 12 })).toEqual([
      'image 8',
      '(image/png of 12 characters of Base64 was left out: it is too large.)',
      'image 4',
    ])
    expect(blocks([image(large), image('aGVs')], { maxBinaryCharacters: 12 })).toEqual([
      'image 12',
      '(image/png of 4 characters of Base64 was left out: it is too large.)',
    ])
    expect(blocks([text('12345'), image('aGVs')], { maxCharacters: 5, maxBinaryCharacters: 4 })).toEqual([
      '12345',
      'image 4',
    ])
  })

  it('given what is not Base64, or has no type, when they are read, then a sentence stands for it, or the general type', () => {
    expect(
      blocks([image('no base64!'), { type: 'audio', data: '!', mimeType: 'audio/wav\u001b[2J' }]),
    ).toEqual([
      '(What should be image/png was left out: it is not Base64.)',
      '(What should be audio/wav was left out: it is not Base64.)',
    ])
    const resource = { uri: 'file:///a', blob: 'aGVs' }
    expect(toParts([{ type: 'resource', resource }], reading())).toEqual([
      { type: 'file', mediaType: 'application/octet-stream', data: 'aGVs' },
    ])
  })

  it('given links, when they are read, then each is one line of its name, type, place and description', () => {
    const link = { type: 'resource_link', uri: 'file:///a.txt', name: 'a' } as const
    expect(blocks([link, { ...link, mimeType: 'text/plain', description: 'One\nline' }])).toEqual([
      'Resource a at file:///a.txt',
      'Resource a (text/plain) at file:///a.txt: One line',
    ])
  })

  it('given links of many characters, when they are read, then each part of one is cut', () => {
    const link = (length: number) => ({
      ...({
        type: 'resource_link',
        name: 'n'.repeat(200 + length),
        uri: 'u'.repeat(2_000 + length),
      } as const),
      ...{ mimeType: 'm'.repeat(100 + length), description: 'd'.repeat(1_000 + length) },
    })
    const [whole = ''] = blocks([link(0)], { maxCharacters: 10_000 })
    expect(whole).toBe(
      `Resource ${'n'.repeat(200)} (${'m'.repeat(100)}) at ${'u'.repeat(2_000)}: ${'d'.repeat(1_000)}`,
    )
    const [cut = ''] = blocks([link(1)], { maxCharacters: 10_000 })
    expect(cut).toMatch(/^Resource n+ … \(cut\) \(m+ … \(cut\)\) at u+ … \(cut\): d+ … \(cut\)$/)
    const media = (length: number) => `m${'/'.repeat(length)}`
    expect(blocks([{ type: 'audio', data: '!', mimeType: media(99) }])).toEqual([
      `(What should be ${media(99)} was left out: it is not Base64.)`,
    ])
    expect(blocks([{ type: 'audio', data: '!', mimeType: media(100) }])[0]).toContain('… (cut) was left out')
  })

  it('given a kind of a later protocol, when it is read, then it is shown as it came, cut where it is long', () => {
    const later = { type: 'song', verse: 'la' } as unknown as client.ContentBlock
    expect(blocks([later])).toEqual(['{"type":"song","verse":"la"}'])
    const long = { type: 'song', verse: 'la'.repeat(6_000) } as unknown as client.ContentBlock
    const [shown = ''] = blocks([long], { maxCharacters: 100_000 })
    expect(shown).toHaveLength(10_000)
  })
})

describe('an answer of many parts', () => {
  it('given more than 256, when it is read, then the rest is counted', () => {
    const many = (count: number): readonly string[] => blocks(Array.from({ length: count }, () => text('.')))
    expect(many(256)).toEqual(Array.from({ length: 256 }, () => '.'))
    expect(many(258).slice(256)).toEqual(['(2 more parts were left out.)'])
  })
})

describe('the structure of an answer', () => {
  const warm = { city: 'Seoul', degrees: 21 }

  it('given a text that says the same, when it is read, then it is shown once', async () => {
    expect(await answer(['{"city":"Seoul","degrees":21}'], warm)).toEqual(['{"city":"Seoul","degrees":21}'])
    const spaced = '{\n  "city": "Seoul",\n  "degrees": 21\n}'
    expect(await answer(['Here:', spaced], warm)).toEqual(['Here:', spaced])
    expect(await answer(['Warm.'], { result: 'Warm.' })).toEqual(['Warm.'])
    expect(await answer(['Warm.'], undefined)).toEqual(['Warm.'])
  })

  it('given no text that says the same, when it is read, then it is shown after the texts', async () => {
    const json = '{"city":"Seoul","degrees":21}'
    for (const said of ['Warm.', '{"city":"Seoul"}', '{"city":', '"Seoul"']) {
      expect(await answer([said], warm)).toEqual([said, json])
    }
    expect(await answer([], warm)).toEqual([json])
    const two = { result: 'Warm.', also: 'Dry.' }
    expect(await answer(['Warm.'], two)).toEqual(['Warm.', JSON.stringify(two)])
    expect(await answer(['21'], { degrees: 21 })).toEqual(['21', '{"degrees":21}'])
  })

  it('given numbers beyond 2^53, when it is read, then a text has them whole, and the structure says that they are rounded', async () => {
    const structure = JSON.parse('{"id":2512292042121000001}') as JsonObject
    expect(await answer(['{"id":2512292042121000001}'], structure)).toEqual(['{"id":2512292042121000001}'])
    const [shown] = await answer([], structure)
    expect(shown).toBe(
      '{"id":"about 2512292042121000000 (rounded: numbers beyond 2^53 have to be sent as text)"}',
    )
  })

  it('given a text of a million characters, when it is compared, then only word for word', async () => {
    const structured = { text: 'x', of: 'y'.repeat(999_978) }
    const spaced = JSON.stringify(structured).replace(':', ': ')
    const of = async (content: string, given: JsonObject): Promise<number> => {
      const result = { content: [text(content)], structuredContent: given } as client.CallToolResult
      return (await toResultContent(result, undefined, reading({ maxCharacters: 3_000_000 }))).length
    }
    expect(spaced).toHaveLength(999_999)
    expect(await of(spaced, structured)).toBe(1)
    expect(await of(`${spaced} `, structured)).toBe(2)
    const longer = { ...structured, more: 'z' }
    expect(await of(JSON.stringify(longer), longer)).toBe(1)
  })

  it('given a schema that the server declares, when the answer does not fit, then that is said; not of an error', async () => {
    const number = { type: 'number' }
    const properties = { a: number, b: number, c: number, d: number }
    const outputSchema = { type: 'object', properties }
    const given = { a: 'x', b: 'x', c: 'x', d: 'x' }
    const json = JSON.stringify(given)
    const [, fault = ''] = await answer([json], given, { outputSchema })
    expect(fault).toMatch(
      /^\(The answer does not fit the output schema that the server itself declares: a [^;]+; b [^;]+; c [^;]+\.\)$/,
    )
    expect(await answer([json], given, { outputSchema, isError: true })).toEqual([json])
    expect(await answer([json], given)).toEqual([json])
    const lacking = '(The answer lacks the structured content that the server itself declares.)'
    expect(await answer([], undefined, { outputSchema })).toEqual([lacking])
    expect(await answer(['no'], undefined, { outputSchema, isError: true })).toEqual(['no'])
    const fitting = { a: 1, b: 2, c: 3, d: 4 }
    expect(await answer([JSON.stringify(fitting)], fitting, { outputSchema })).toHaveLength(1)
  })
})
