import { ConfigurationError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { defineTool, whenInput } from '@tallystick/tools'
import type { ToolContext } from '@tallystick/tools'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'

const valid = {
  name: 'get_weather',
  description: 'Says how warm it is in a city.',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: ({ city }: { city: string }) => `21 degrees in ${city}`,
} as const

describe('defineTool', () => {
  it('gives what the runtime needs of a tool', () => {
    const tool = defineTool({ ...valid, timeoutMs: 2_000 })
    expect(tool).toMatchObject({
      name: 'get_weather',
      description: 'Says how warm it is in a city.',
      effect: 'read',
      recovery: 'rerun',
      timeoutMs: 2_000,
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    })
    expect(tool.inputSchema).not.toHaveProperty('$schema')
    expect(tool).not.toHaveProperty('reconcile')
    expect(Object.isFrozen(tool)).toBe(true)
  })

  it('tells the model the same schema whichever library wrote it', () => {
    const schemas = [
      z.strictObject({ city: z.string(), days: z.int().min(1).max(9) }),
      toStandardJsonSchema(
        v.strictObject({
          city: v.string(),
          days: v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(9)),
        }),
      ),
      type({ '+': 'reject', city: 'string', days: '1 <= number.integer <= 9' }),
    ]
    for (const input of schemas) {
      expect(defineTool({ ...valid, input, execute: () => '' }).inputSchema).toEqual({
        type: 'object',
        properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 9 } },
        required: ['city', 'days'],
        additionalProperties: false,
      })
    }
  })

  it('keeps a plain JSON Schema as it was given', () => {
    const input = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      definitions: {},
    } as const
    const tool = defineTool({ ...valid, input, execute: () => '' })
    expect(tool.inputSchema).toEqual(input)
    expect(tool.inputSchema).not.toBe(input)
  })

  it('infers the input of execute and of the policies from the schema', () => {
    defineTool({
      ...valid,
      input: z.object({ days: z.number().default(3), at: z.string().transform((text) => text.length) }),
      execute(input, context) {
        expectTypeOf(input).toEqualTypeOf<{ days: number; at: number }>()
        expectTypeOf(context).toEqualTypeOf<ToolContext>()
      },
      approval: whenInput((input) => {
        expectTypeOf(input).toEqualTypeOf<{ days: number; at: number }>()
        return input.days > 3
      }),
    })
    const plain = defineTool({
      ...valid,
      input: { type: 'object' },
      execute: (input) => void expectTypeOf(input).toEqualTypeOf<JsonObject>(),
    })
    // @ts-expect-error the schema gives a string, and execute takes a number
    defineTool({ ...valid, execute: ({ city }: { city: number }) => city })
    expect(plain.inputSchema).toMatchObject({ type: 'object' })
  })

  it('reruns reads, reports writes and reconciles where it can, unless told otherwise', () => {
    const reconcile = () => 'unknown' as const
    expect(defineTool(valid).recovery).toBe('rerun')
    expect(defineTool({ ...valid, effect: 'write' }).recovery).toBe('report')
    expect(defineTool({ ...valid, effect: 'write', reconcile }).recovery).toBe('reconcile')
    expect(defineTool({ ...valid, effect: 'write', recovery: 'ask' }).recovery).toBe('ask')
  })

  const arrow = (): string => ''
  it.each<[string, object, RegExp]>([
    [
      'an empty name',
      { name: '' },
      /defineTool: name is an empty text; expected a text of 1 to 128 characters, each of/,
    ],
    [
      'a name with a space',
      { name: 'get weather' },
      /The tool get weather: name is a text, 'get weather'; expected a text of 1 to 128 characters, each of A-Z/,
    ],
    [
      'a blank description',
      { description: ' ' },
      /The tool get_weather: description is a text; expected a text that is not empty/,
    ],
    [
      'no effect',
      { effect: undefined },
      /effect is missing: give 'read' where it changes nothing outside, else 'write'/,
    ],
    ['an unknown effect', { effect: 'pure' }, /effect is 'pure'; use one of 'read', 'write'/],
    ['no execute', { execute: undefined }, /execute is missing: give a function/],
    [
      'a timeout of 0',
      { timeoutMs: 0 },
      /timeoutMs is 0; expected a whole number of milliseconds from 1 to 2147483647/,
    ],
    [
      'an approval that is not one',
      { approval: 'alway' },
      /approval is 'alway'; use one of 'always', 'never'. Did you mean 'always'\?/,
    ],
    [
      'an unknown recovery',
      { recovery: 'retry' },
      /recovery is 'retry'; use one of 'rerun', 'reconcile', 'ask', 'report'/,
    ],
    ['a slip of the pen', { timeOutMs: 5 }, /timeOutMs is not an option. Did you mean timeoutMs\?/],
    [
      'reconcile without a function',
      { recovery: 'reconcile' },
      /has recovery 'reconcile' but no reconcile\./,
    ],
    ['a function that is never called', { recovery: 'ask', reconcile: arrow }, /recovery 'ask' never calls/],
    ['no schema', { input: undefined }, /input is missing: give a schema, such as z.object/],
    [
      'a schema of type array',
      { input: { type: 'array' } },
      /not of type object.*Wrap what you have in an object/,
    ],
    ['a choice at the root', { input: z.union([z.object({}), z.string()]) }, /not of type object/],
    [
      'a JSON Schema that is not JSON',
      { input: { type: 'object', x: 1n } },
      /is not JSON: \$\.x is a bigint/,
    ],
    [
      'a date',
      { input: z.object({ on: z.date() }) },
      /\(zod\) cannot be described to a model: Date cannot be.*text for dates/,
    ],
    [
      'bare valibot',
      { input: v.object({ city: v.string() }) },
      /\(valibot\) gives no JSON Schema.*toStandardJsonSchema\(schema\), from the package @valibot\/to-json-schema/,
    ],
    [
      'another library without JSON Schema',
      { input: { '~standard': { version: 1, vendor: 'acme', validate: arrow } } },
      /\(acme\) gives no JSON Schema.*acme's own converter.*or give a plain JSON Schema/,
    ],
    [
      'a pattern that is not one',
      { input: { type: 'object', properties: { a: { pattern: '(' } } } },
      /"\(" is not a regular expression/,
    ],
    [
      'a pattern of names that is not one',
      { input: { type: 'object', patternProperties: { '[': { type: 'string' } } } },
      /"\[" is not a regular expression/,
    ],
    [
      'several patterns that are not one, of which the first is named',
      { input: { type: 'object', patternProperties: { '(': {}, '[': {} } } },
      /"\(" is not a regular expression/,
    ],
    [
      'properties that are a number',
      { input: { type: 'object', properties: 5 } },
      /properties are not an object/,
    ],
    [
      'properties that are a list',
      { input: { type: 'object', properties: [] } },
      /properties are not an object/,
    ],
    ['a list as a schema', { input: [{ type: 'object' }] }, /is not a schema/],
    ['no schema at all', { input: null }, /is not a schema|is null/],
    [
      'a reference to nowhere',
      { input: { type: 'object', properties: { a: { $ref: '#/$defs/b' } } } },
      /\$ref "#\/\$defs\/b" leads to nothing/,
    ],
  ])('refuses %s', (_what, change, message) => {
    const define = (): unknown => defineTool({ ...valid, ...change } as never)
    expect(define).toThrow(ConfigurationError)
    expect(define).toThrow(message)
  })
})
