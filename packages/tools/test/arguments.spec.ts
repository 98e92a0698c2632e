import type { Tool } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { InputSchema } from '@tallystick/tools'
import { defineTool } from '@tallystick/tools'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { callContext, endingOf, signalsOf } from './one-call.ts'

function toolOf(input: InputSchema, execute: (input: unknown) => unknown = () => ''): Tool {
  return defineTool({ name: 'plan', description: 'Plans.', input, effect: 'read', execute })
}

/** The lines that explain what is wrong with an input, sorted; fails when check and run explain differently. */
async function explanation(input: InputSchema, given: JsonObject): Promise<readonly string[]> {
  const tool = toolOf(input)
  const verdict = await tool.check(given, callContext)
  const { outcome, text } = await endingOf(tool, given)
  expect(outcome).toBe('invalid_input')
  expect(verdict).toEqual({ kind: 'refuse', outcome: 'invalid_input', text })
  return text.split('\n').slice(1).sort()
}

const forecast: Readonly<Record<string, InputSchema>> = {
  zod: z.strictObject({
    city: z.string(),
    days: z.int().min(1).default(3),
    unit: z.enum(['c', 'f']),
    stops: z.array(z.object({ lat: z.number() })).optional(),
    key: z.union([z.string(), z.number()]).optional(),
  }),
  valibot: toStandardJsonSchema(
    v.strictObject({
      city: v.string(),
      days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 3),
      unit: v.picklist(['c', 'f']),
      stops: v.optional(v.array(v.object({ lat: v.number() }))),
      key: v.optional(v.union([v.string(), v.number()])),
    }),
  ),
  arktype: type({
    '+': 'reject',
    city: 'string',
    days: 'number.integer >= 1 = 3',
    unit: "'c' | 'f'",
    'stops?': type({ lat: 'number' }).array(),
    'key?': 'string | number',
  }),
  'JSON Schema': {
    type: 'object',
    additionalProperties: false,
    required: ['city', 'unit'],
    properties: {
      city: { type: 'string' },
      days: { type: 'integer', minimum: 1, default: 3 },
      unit: { enum: ['c', 'f'] },
      stops: { type: 'array', items: { $ref: '#/$defs/stop' } },
      key: { anyOf: [{ type: 'string' }, { type: 'number' }] },
    },
    $defs: { stop: { type: 'object', required: ['lat'], properties: { lat: { type: 'number' } } } },
  },
}

describe.each(Object.entries(forecast))('an input that does not fit a schema of %s', (_vendor, schema) => {
  it('is explained by path, expectation and kind, all at once', async () => {
    const given = { city: 42, days: 1.5, unit: 'k', stops: [{ lat: 'x' }, 5, {}], key: true, wind: 1 }
    expect(await explanation(schema, given)).toEqual([
      '- city: expected string, received number',
      '- days: expected integer, received number',
      expect.stringMatching(/^- key: expected (string or number|number or string), received boolean$/),
      '- stops[0].lat: expected number, received string',
      '- stops[1]: expected object, received number',
      '- stops[2].lat: missing, expected number',
      '- unit: expected one of "c", "f", received another string',
      expect.stringMatching(
        /^- wind: unknown key; the keys are (city|days|unit|stops|key)(, (city|days|unit|stops|key)){4}$/,
      ),
    ])
  })

  it('says which keys are missing', async () => {
    expect(await explanation(schema, {})).toEqual([
      '- city: missing, expected string',
      '- unit: missing, expected one of "c", "f"',
    ])
  })

  it('keeps the words of the library where the schema has no plain ones', async () => {
    const [line, ...others] = await explanation(schema, { city: 'Oslo', unit: 'c', days: 0 })
    expect(line).toMatch(/^- days: .*1/)
    expect(line).not.toMatch(/days.*days|Invalid value/)
    expect(others).toEqual([])
  })
})

describe('an input', () => {
  it.each(Object.entries(forecast).slice(0, 3))(
    'reaches execute with the defaults of %s',
    async (_vendor, schema) => {
      const seen: unknown[] = []
      await signalsOf(
        toolOf(schema, (input) => void seen.push(input)),
        { city: 'Oslo', unit: 'c' },
      )
      expect(seen).toEqual([{ city: 'Oslo', unit: 'c', days: 3 }])
    },
  )

  it('reaches execute as the schema converts it, also asynchronously', async () => {
    const seen: unknown[] = []
    const schema = z.object({
      at: z.string().transform(async (text) => new Date(text)),
      n: z.coerce.number(),
    })
    await signalsOf(
      toolOf(schema, (input) => void seen.push(input)),
      { at: '2026-11-20T00:00:00Z', n: '7' },
    )
    expect(seen).toEqual([{ at: new Date('2026-11-20T00:00:00Z'), n: 7 }])
  })

  it('belongs to execute: changing it does not change what was recorded', async () => {
    const recorded = { list: [1, 2] }
    const tool = toolOf({ type: 'object' }, (input) => (input as { list: number[] }).list.push(3))
    expect(await endingOf(tool, recorded)).toEqual({ outcome: 'success', text: '3' })
    expect(recorded).toEqual({ list: [1, 2] })
  })

  it('is judged as a whole where a rule spans keys', async () => {
    const schema = z
      .object({ from: z.number(), to: z.number() })
      .refine(({ from, to }) => from < to, 'from must be below to')
    expect(await explanation(schema, { from: 2, to: 1 })).toEqual(['- input: from must be below to'])
  })
})
