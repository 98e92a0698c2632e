// What becomes of the tools that a server lists.
import type * as client from '@modelcontextprotocol/client'
import { createKnownSecrets } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { readCheckedSchema } from '../../../src/mcp/result.ts'
import { type Listing, readListing, compareListings } from '../../../src/mcp/listing.ts'

const secret = 'swordfish-0123456789'
const inputSchema = { type: 'object' } as const
const tool = (name: string, more: object = {}): client.Tool => ({ name, inputSchema, ...more })
const listing = (...tools: readonly client.Tool[]): Listing =>
  readListing('shop', tools, createKnownSecrets([secret]))
const listed = (more: object) => listing(tool('a', more)).tools.get('a')
const faults = (...tools: readonly client.Tool[]): readonly string[] => listing(...tools).faults

describe('a tool that a server lists', () => {
  it('is offered with what the server says of it', () => {
    const raw = tool('a', { description: ' Does it. ', annotations: { readOnlyHint: true } })
    expect(listing(raw).tools.get('a')).toEqual({
      ...{ name: 'a', exposedName: 'mcp__shop__a', description: 'Does it.', inputSchema, raw },
      annotations: { readOnlyHint: true },
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  it.each<[string, object, string]>([
    ['its title, where it says no more', { title: 'One.', annotations: { title: 'Two.' } }, 'One.'],
    ['the title of its annotations', { description: ' ', annotations: { title: 'Two.' } }, 'Two.'],
    ['a sentence of its name', { description: '' }, 'The tool a of shop.'],
    ['no secret', { description: `Knows ${secret}.` }, 'Knows [secret].'],
    ['nothing that a terminal obeys', { description: 'Does\u001b[2J it.' }, 'Does it.'],
  ])('is described by %s', (_what, more, description) => {
    expect(listed(more)?.description).toBe(description)
  })

  it('is described in 8000 characters at most', () => {
    expect(listed({ description: '-'.repeat(8_000) })?.description).toHaveLength(8_000)
    expect(listed({ description: '-'.repeat(8_001) })?.description).toMatch(/^-+ … \(cut\)$/)
    // What is behind 16,000 characters is not read, not even where nothing is left of those.
    const hidden = '\u001b[2J'.repeat(4_000)
    expect(listed({ description: `${hidden}late` })?.description).toBe('The tool a of shop.')
    expect(listed({ description: `${hidden.slice(4)}late` })?.description).toBe('late')
  })

  it('is named in its description by 64 characters of its name and of its server', () => {
    const [server, name] = ['s'.repeat(70), 'n'.repeat(70)]
    const { tools } = readListing(server, [tool(name)], createKnownSecrets([]))
    expect(tools.get(name)?.description).toBe(
      `The tool ${'n'.repeat(56)} … (cut) of ${'s'.repeat(56)} … (cut).`,
    )
  })

  it('has the schemas of the server, whose texts are clean', () => {
    const texts = { description: `\u001b[2J${secret}`, title: `\u001b[2Jt`, $comment: `\u001b[2Jc` }
    const given = {
      ...{ $schema: 'http://json-schema.org/draft-07/schema#', type: 'object' },
      properties: {
        a: { ...texts, default: `\u001b[2J${secret}`, enum: [1, null, true] },
        title: { type: 'string' },
      },
    }
    const schema = {
      type: 'object',
      properties: {
        a: {
          ...{ description: '[secret]', title: 't', $comment: 'c' },
          ...{ default: '\u001b[2J[secret]', enum: [1, null, true] },
        },
        title: { type: 'string' },
      },
    }
    expect(listed({ inputSchema: given, outputSchema: given })).toMatchObject({
      ...{ inputSchema: schema, outputSchema: schema },
    })
    expect(listed({ outputSchema: { type: 'array' } })).not.toHaveProperty('outputSchema')
    expect(listed({})).not.toHaveProperty('outputSchema')
  })

  it.each<[string, client.Tool, string]>([
    ['no name', tool(''), 'the tool "" is left out: its name has 0 characters'],
    [
      'a long name',
      tool('n'.repeat(257)),
      `the tool "${'n'.repeat(56)} … (cut)" is left out: its name has 257 characters`,
    ],
    [
      'no schema',
      tool('a', { inputSchema: 'x' }),
      'the tool "a" is left out: its input schema is not of type object',
    ],
    [
      'a schema of no type',
      tool('a', { inputSchema: {} }),
      'the tool "a" is left out: its input schema is not of type object',
    ],
    [
      'a schema that is not JSON',
      tool('a', { inputSchema: { type: 'object', a: 1n } }),
      expect.stringMatching(/^the tool "a" is left out: its input schema is not JSON \(.+\)$/) as never,
    ],
    [
      'a large schema',
      tool('a', { inputSchema: { type: 'object', a: '-'.repeat(99_977) } }),
      'the tool "a" is left out: its input schema has 100001 characters; 100000 are taken',
    ],
  ])('with %s is left out, and named', (_what, raw, fault) => {
    expect(listing(raw, tool('b'))).toMatchObject({ faults: [fault] })
    expect([...listing(raw, tool('b')).tools.keys()]).toEqual(['b'])
  })

  it('may have a name of 256 characters, and a schema of 100000', () => {
    expect(faults(tool('n'.repeat(256)))).toEqual([])
    expect(faults(tool('a', { inputSchema: { type: 'object', a: '-'.repeat(99_976) } }))).toEqual([])
  })

  it('that is listed twice is taken once', () => {
    const twice = listing(tool('a', { description: 'One.' }), tool('a', { description: 'Two.' }))
    expect([...twice.tools.values()].map(({ description }) => description)).toEqual(['One.'])
    expect(twice.faults).toEqual(['the tool "a" is left out: it is listed twice'])
  })

  it('is one of a thousand at most, and one of twenty faults', () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => tool(`t${at}`))
    expect(listing(...many(1_000)).faults).toEqual([])
    const more = listing(...many(1_001))
    expect([more.tools.size, more.faults]).toEqual([1_000, ['lists 1001 tools; the first 1000 are taken']])
    expect(faults(...Array.from({ length: 30 }, () => tool('')))).toHaveLength(20)
  })
})

describe('the difference between two lists', () => {
  const [a, b] = [tool('a'), tool('b')]
  const c = tool('c', { description: 'Sees.' })
  it.each([
    ['nothing', [a, b], [b, a], undefined],
    ['what is new', [a], [a, b], { added: ['mcp__shop__b'], removed: [], changed: [] }],
    ['what is gone', [a, b], [a], { added: [], removed: ['mcp__shop__b'], changed: [] }],
    [
      'what is another one',
      [a, b, c],
      [
        tool('a', { description: 'Else.' }),
        b,
        tool('c', { inputSchema: { type: 'object', minProperties: 1 } }),
      ],
      { added: [], removed: [], changed: ['mcp__shop__a', 'mcp__shop__c'] },
    ],
  ])('is %s', (_what, before, after, changes) => {
    expect(compareListings('shop', listing(...before), listing(...after))).toEqual(
      changes && { server: 'shop', ...changes },
    )
  })
})

describe('the part of a schema that is checked', () => {
  it.each<[string, JsonObject]>([
    ['types', { type: 'object' }],
    ['several types', { type: ['object', 'null'] }],
    ['values', { enum: ['a', 1], const: { a: [] } }],
    ['names', { required: ['a'] }],
    ['bounds', { minimum: 1, maximum: 2, exclusiveMinimum: 0, exclusiveMaximum: 3, multipleOf: 1 }],
    ['lengths', { minLength: 1, maxLength: 2, minItems: 1, maxItems: 2, minProperties: 1, maxProperties: 2 }],
    ['choices', { allOf: [{ type: 'string' }], anyOf: [{ type: 'string' }, true] }],
    ['items', { items: { type: 'string' }, prefixItems: [{ type: 'number' }] }],
    ['properties', { properties: { a: { type: 'string' } }, additionalProperties: { type: 'number' } }],
    ['no more properties', { properties: { a: true }, additionalProperties: false }],
  ])('holds %s', (_what, schema) => {
    expect(readCheckedSchema(schema)).toEqual(schema)
  })

  it.each<[string, JsonObject, JsonObject]>([
    ['keywords that may be dear', { pattern: 'a', $ref: '#', not: {}, format: 'uri', toString: 1 }, {}],
    ['bounds of another kind', { minimum: '1', exclusiveMinimum: true, maxLength: null }, {}],
    ['types and names of another kind', { type: 1, required: true, enum: 'a' }, {}],
    ['types and names of which one is not text', { type: ['object', 1], required: ['a', 1] }, {}],
    ['lists of another kind', { allOf: {}, anyOf: 'x', properties: [], prefixItems: 1 }, {}],
    ['properties of nothing', { properties: null }, {}],
    ['items of nothing', { items: null }, { items: true }],
    [
      'that only one may fit, beside a type',
      { type: 'string', oneOf: [true] },
      { type: 'string', anyOf: [true] },
    ],
    ['items of an older draft', { items: [{ type: 'string' }] }, {}],
    ['further properties beside patterns', { patternProperties: { a: {} }, additionalProperties: false }, {}],
    ['a part that is not a schema', { items: 'x', anyOf: [1] }, { items: true, anyOf: [true] }],
    ['that only one may fit', { oneOf: [{ type: 'string' }] }, { anyOf: [{ type: 'string' }] }],
    [
      'that only one may fit, beside a choice',
      { oneOf: [{ type: 'string' }], anyOf: [true] },
      { anyOf: [true] },
    ],
    ['a choice that is none', { oneOf: 'x', type: 'object' }, { type: 'object' }],
  ])('holds no %s', (_what, schema, checked) => {
    expect(readCheckedSchema(schema)).toEqual(checked)
  })

  it('ends 32 levels deep', () => {
    const deep = (levels: number, innermost: JsonObject | true): JsonObject =>
      levels === 1 ? { items: innermost } : { items: deep(levels - 1, innermost) }
    expect(readCheckedSchema(deep(32, { type: 'string' }))).toEqual(deep(32, { type: 'string' }))
    expect(readCheckedSchema(deep(33, { type: 'string' }))).toEqual(deep(33, true))
  })
})
