import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import { readCheckedSchema } from '../../src/mcp/result.ts'
import { toExposedName } from '../../src/mcp/listing.ts'
import { createSchemaParse } from '../../src/define/schema.ts'
import type { JsonObject } from '@tallystick/core/vocabulary'

/** Names that are near one another: of few characters, some of them those that the name itself is made of. */
const near = fc.string({
  unit: fc.constantFrom('_', 'a', '-', '.', '/', ' ', 'ü', '\0'),
  minLength: 1,
  maxLength: 6,
})
const long = fc.string({ unit: fc.constantFrom('_', 'a', '0'), minLength: 25, maxLength: 70 })
const name = fc.oneof(
  near,
  long,
  fc.string({ minLength: 1, maxLength: 130 }),
  fc.constantFrom('__', 'a__b', 'a_', '_a'),
)

describe('the names of tools', () => {
  it('fit every model, and no two tools share one', () => {
    const pair = fc.tuple(name, name)
    fc.assert(
      fc.property(
        fc.uniqueArray(pair, { selector: (each) => JSON.stringify(each), minLength: 2, maxLength: 40 }),
        (tools) => {
          const names = tools.map(([server, tool]) => toExposedName(server, tool))
          for (const each of names) expect(each).toMatch(/^mcp__[\w-]{1,59}$/)
          expect(new Set(names).size).toBe(tools.length)
        },
      ),
      { numRuns: tries(3_000) },
    )
  })

  it('stay as they are where they say all', () => {
    expect(toExposedName('files', 'read_text_file')).toBe('mcp__files__read_text_file')
    expect(toExposedName('a', '_b')).toBe('mcp__a___b')
    expect(toExposedName('a_', 'b')).not.toBe('mcp__a___b')
    // What looks like a cut name is cut, too: a server cannot take the name of another one's tool.
    const [cut] = [toExposedName('a b', 'x')]
    expect(toExposedName('a_b', cut.slice('mcp__a_b__'.length))).not.toBe(cut)
  })
})

describe('the check of a server’s schema', () => {
  const leaf = fc.constantFrom<JsonObject>(
    { type: 'string' },
    { type: 'number', minimum: 2 },
    { enum: ['a', 1] },
    { const: true },
    { pattern: '^(a+)+$' },
    { not: {} },
    { $ref: '#' },
    { minimum: 1, exclusiveMinimum: true },
    { required: true },
    { type: 'array', maxItems: 1 },
  )
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.record({
        type: fc.constant('object'),
        properties: fc.dictionary(fc.constantFrom('a', 'b'), tie('schema')),
        required: fc.constantFrom([], ['a']),
        additionalProperties: fc.boolean(),
      }),
      fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
      fc.record({ items: tie('schema') }),
      fc.record({ not: tie('schema') }),
    ),
  }))

  async function isTaken(given: JsonObject, input: JsonObject): Promise<boolean> {
    try {
      return (await createSchemaParse('t', given)(input)).ok
    } catch {
      return false
    }
  }

  it('refuses nothing that the whole schema takes', async () => {
    const value = fc.jsonValue({ maxDepth: 3 })
    await fc.assert(
      fc.asyncProperty(schema, fc.dictionary(fc.constantFrom('a', 'b', 'c'), value), async (given, input) => {
        if (!(await isTaken(given, input as JsonObject))) return
        const checked = await createSchemaParse('t', readCheckedSchema(given))(input as JsonObject)
        expect(checked).toMatchObject({ ok: true })
      }),
      { numRuns: tries(1_000) },
    )
  })
})
