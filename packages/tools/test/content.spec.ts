import { ConfigurationError } from '@tallystick/core'
import type { ToolSignal } from '@tallystick/core/vocabulary'
import { defineTool, file, image, json, text } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { toContent, toJson } from '../src/define/content.ts'
import { signalsOf } from './one-call.ts'

async function endingFor(returned: unknown): Promise<Extract<ToolSignal, { type: 'tool_ended' }>> {
  const tool = defineTool({
    name: 'give',
    description: 'Gives.',
    input: { type: 'object' },
    effect: 'read',
    execute: () => returned,
  })
  const [ending] = await signalsOf(tool, {})
  if (ending?.type !== 'tool_ended') throw new Error('no ending')
  return ending
}

class Money {
  readonly cents = 1050
  toJSON(): string {
    return '10.50'
  }
}

describe('what a tool returns', () => {
  const part = (text: string) => [{ type: 'text', text }]
  const chart = image({ mediaType: 'image/png', data: 'aGk=' })
  it.each<[string, unknown, readonly object[]]>([
    ['a string as it is', ' {not json} \n', part(' {not json} \n')],
    [
      'an empty string as words, since models refuse empty texts',
      '',
      part('Done. The result is an empty text.'),
    ],
    ['nothing as words', undefined, part('Done. The tool has nothing to report.')],
    ['null as JSON', null, part('null')],
    ['a number as JSON', 0.1, part('0.1')],
    ['a boolean as JSON', false, part('false')],
    ['an empty list as JSON', [], part('[]')],
    ['strings as lines of one text', ['first', 'the "second"'], part('first\nthe "second"')],
    ['one string in a list as that text', ['a'], part('a')],
    ['empty strings in a list as words', ['', ''], part('Done. The result is an empty text.')],
    ['strings in a list as JSON, where that is said', json(['a', 'b']), part('["a","b"]')],
    ['other lists as JSON', ['a', 1, null], part('["a",1,null]')],
    ['parts without the empty strings between them', ['', text('a'), ''], part('a')],
    [
      'an object as JSON in its own order',
      { b: 1, a: [{ c: 'é\ud800' }] },
      part('{"b":1,"a":[{"c":"é\\ud800"}]}'),
    ],
    ['an object without its undefined keys', { a: undefined, b: 1 }, part('{"b":1}')],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), part('{"a":1}')],
    [
      'an instance of a class by its fields, were it one alone',
      new (class Point {
        readonly x = 1
      })(),
      part('{"x":1}'),
    ],
    ['a key named __proto__', JSON.parse('{"__proto__":{"a":1}}'), part('{"__proto__":{"a":1}}')],
    [
      'what says itself how it is JSON',
      { at: new Date(0), price: new Money() },
      part('{"at":"1970-01-01T00:00:00.000Z","price":"10.50"}'),
    ],
    ['JSON that looks like a part', { type: 'text', text: 'x' }, part('{"type":"text","text":"x"}')],
    [
      'a list of JSON that looks like parts',
      [{ type: 'text', text: 'x' }],
      part('[{"type":"text","text":"x"}]'),
    ],
    ['a part that text() made', text('x'), part('x')],
    ['an image that image() made', chart, [{ type: 'image', mediaType: 'image/png', data: 'aGk=' }]],
    [
      'a list of parts, with strings and JSON between them',
      [
        'The chart:',
        chart,
        { n: 1 },
        file({ mediaType: 'application/pdf', name: 'a.pdf', url: 'https://a.example/a.pdf' }),
      ],
      [
        { type: 'text', text: 'The chart:' },
        { type: 'image', mediaType: 'image/png', data: 'aGk=' },
        { type: 'text', text: '{"n":1}' },
        { type: 'file', mediaType: 'application/pdf', name: 'a.pdf', url: 'https://a.example/a.pdf' },
      ],
    ],
  ])('shows %s', async (_what, returned, content) => {
    const ending = await endingFor(returned)
    expect(ending).toStrictEqual({ type: 'tool_ended', outcome: 'success', content })
    expect(Reflect.ownKeys(ending.content[0] ?? {}).every((key) => typeof key === 'string')).toBe(true)
  })

  const circle: { self?: unknown } = {}
  circle.self = [circle]
  let deep: unknown = 1
  for (let depth = 0; depth < 5_000; depth++) deep = [deep]
  it.each<[string, unknown, string]>([
    ['a bigint', { n: [1n] }, '$.n[0] is a bigint, which JSON cannot carry'],
    ['NaN', Number.NaN, '$ is NaN, which JSON cannot carry'],
    ['an infinity', { a: { b: -Infinity } }, '$.a.b is -Infinity, which JSON cannot carry'],
    ['a function', () => 1, '$ is a function, which JSON cannot carry'],
    ['a symbol', [Symbol('s')], '$[0] is a symbol, which JSON cannot carry'],
    ['undefined in a list', [1, undefined], '$[1] is undefined, which JSON cannot carry'],
    ['a hole in a list', Object.assign([], { length: 1 }), '$[0] is undefined, which JSON cannot carry'],
    ['a Map', { m: new Map([[1, 2]]) }, '$.m is an instance of Map, which JSON cannot carry'],
    ['what has no class', Object.create(Object.create(null)), '$ is an instance of a class, which'],
    ['bytes', new Uint8Array([1]), '$ is an instance of Uint8Array, which JSON cannot carry'],
    ['an unread Response', new Response('x'), '$ is an instance of Response, which JSON cannot carry'],
    [
      'an Error that was returned',
      Object.assign(new Error('x'), { code: 1 }),
      '$ is an instance of Error, which JSON cannot carry',
    ],
    [
      'a generator',
      (function* () {
        yield 1
      })(),
      '$ is an instance of ',
    ],
    ['what holds itself', circle, '$.self[0] holds itself, which JSON cannot carry'],
    ['what is nested too deep', deep, 'is nested deeper than 200 levels'],
    [
      'what throws when it is read',
      new (class {
        readonly a = 1
        get toJSON(): never {
          throw new Error('trap')
        }
      })(),
      'Error: trap',
    ],
  ])('fails on %s, and names the place', async (_what, returned, why) => {
    const { outcome, content } = await endingFor(returned)
    expect(outcome).toBe('failed')
    expect(content).toHaveLength(1)
    expect(content[0]).toHaveProperty('text', expect.stringContaining(why))
    expect(content[0]).toHaveProperty(
      'text',
      expect.stringMatching(/^The tool ran, but what it returned cannot be shown/),
    )
  })

  it('is the JSON of an object without a prototype, and nothing of one whose content is elsewhere', () => {
    expect(toContent(Object.create(null))).toEqual([{ type: 'text', text: '{}' }])
    class Stream {
      readonly name = 'a stream'
      async *[Symbol.asyncIterator]() {
        yield 1
      }
    }
    expect(() => toContent(new Stream())).toThrow('is an instance of Stream, which JSON cannot carry')
  })

  it('is nested 200 levels deep, and no deeper', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) })
    expect(JSON.stringify(toJson(nested(200)))).toHaveLength(200 * 6 + 1)
    expect(() => toJson(nested(201))).toThrow('is nested deeper than 200 levels')
  })

  it('is not shared with the tool: changing it later changes nothing', async () => {
    const returned = { a: 1 }
    const { content } = await endingFor(returned)
    returned.a = 2
    expect(content).toEqual([{ type: 'text', text: '{"a":1}' }])
  })
})

describe('makers of parts', () => {
  it('encode bytes as base64', () => {
    const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256)
    const { data = '' } = file({ mediaType: 'application/octet-stream', data: bytes })
    expect(Uint8Array.from(Buffer.from(data, 'base64'))).toEqual(bytes)
  })

  it('name what a provider keeps, and how closely an image is looked at', () => {
    const providerFile = { provider: 'openai', id: 'file_1' }
    const kept = { mediaType: 'image/png', providerFile, detail: 'low' } as const
    expect(image(kept)).toEqual({ type: 'image', ...kept })
  })

  it('want of a file with a provider both who keeps it and its id there', () => {
    for (const providerFile of [
      { provider: 'openai', id: '' },
      { provider: '', id: 'file-1' },
    ])
      expect(() => image({ mediaType: 'image/png', providerFile })).toThrow(
        'image() takes a providerFile with the provider that keeps it, and its id there.',
      )
  })

  it('take megabytes of base64', () => {
    const data = 'AAAA'.repeat(5_000_000)
    expect(image({ mediaType: 'image/png', data }).data).toBe(data)
  })

  it.each<[string, () => unknown, RegExp]>([
    ['text of a number', () => text(1 as never), /text\(\) takes a string, not number/],
    [
      'an image of another type',
      () => image({ mediaType: 'text/html', url: 'https://a.example' }),
      /mediaType such as "image\/png", not "text\/html"/,
    ],
    [
      'an image from nowhere',
      () => image({ mediaType: 'image/png' } as never),
      /exactly one of data, url and providerFile/,
    ],
    [
      'an image from two places',
      () => image({ mediaType: 'image/png', data: 'aGk=', url: 'https://a.example' } as never),
      /exactly one of data, url and providerFile/,
    ],
    [
      'a kept file without its keeper',
      () => file({ mediaType: 'application/pdf', providerFile: { provider: '', id: 'file_1' } }),
      /takes a providerFile with the provider that keeps it/,
    ],
    [
      'a file without a type',
      () => file({ mediaType: 'pdf', url: 'https://a.example' }),
      /mediaType such as "application\/pdf"/,
    ],
    [
      'data of the length of base64 that is none',
      () => file({ mediaType: 'text/plain', data: 'no!=' }),
      /base64 text, or as bytes/,
    ],
    [
      'base64 of another length',
      () => file({ mediaType: 'text/plain', data: 'aGk' }),
      /base64 text, or as bytes/,
    ],
    [
      'data that is not a base64',
      () => file({ mediaType: 'text/plain', data: 'not base64!' }),
      /base64 text, or as bytes/,
    ],
    ['nothing for an image', () => image(undefined as never), /image: what it was given is missing/],
    [
      'a type by another name',
      () => image({ mimeType: 'image/png', data: 'aGk=' } as never),
      /image: mimeType is not an option\. Did you mean mediaType\?/,
    ],
    [
      'a detail by a slip',
      () => image({ mediaType: 'image/png', data: 'aGk=', detial: 'low' } as never),
      /Did you mean detail\?/,
    ],
    [
      'a detail that is not one',
      () => image({ mediaType: 'image/png', data: 'aGk=', detail: 'hihg' } as never),
      /detail is 'hihg'.*Did you mean 'high'\?/,
    ],
    [
      'a name by a slip',
      () => file({ mediaType: 'text/plain', data: 'aGk=', filename: 'a.txt' } as never),
      /file: filename is not an option\. Did you mean name\?/,
    ],
    [
      'a URL that is not text',
      () => file({ mediaType: 'text/plain', url: new URL('https://a.example') } as never),
      /url is an object; expected a text/,
    ],
  ])('refuse %s', (_what, make, message) => {
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(message)
  })
})

describe('a source under other names', () => {
  it.each([
    ['mime', 'mediaType'],
    ['bytes', 'data'],
    ['base64', 'data'],
    ['href', 'url'],
  ])('is refused, with the name that was meant: %s for %s', (other, name) => {
    expect(() => image({ mediaType: 'image/png', data: 'aGk=', [other]: 'x' })).toThrow(
      `image: ${other} is not an option. Did you mean ${name}?`,
    )
  })
})
