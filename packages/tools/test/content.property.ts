import type { JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '@tallystick/tools'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tries } from '../../../scripts/testing/effort.ts'
import { callContext, endingOf, signalsOf } from './one-call.ts'

const json = fc.jsonValue({ maxDepth: 4 })

/** The text that a string, or an array of nothing but strings, is. */
function linesOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  const isText = Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')
  return isText ? value.join('\n') : undefined
}

describe('any JSON value', () => {
  it('that a tool returns is shown as the JSON that reads back as it, and texts as they are', async () => {
    const isShown = fc.asyncProperty(json, async (value) => {
      const tool = defineTool({
        name: 'give',
        description: 'Gives.',
        input: { type: 'object' },
        effect: 'read',
        execute: () => value,
      })
      const { outcome, text } = await endingOf(tool, {})
      expect(outcome).toBe('success')
      const words = linesOf(value)
      const shown = words === undefined ? JSON.stringify(JSON.parse(text)) : text
      const wanted = words ?? JSON.stringify(value)
      expect(shown).toBe(wanted.trim() === '' ? 'Done. The result is an empty text.' : wanted)
    })
    await fc.assert(isShown, { numRuns: tries(300) })
  })

  it('is checked and run alike, and explained in bounds where it does not fit', async () => {
    const schemas = [
      z.strictObject({
        a: z.string(),
        b: z.array(z.object({ c: z.number() })),
        d: z.union([z.null(), z.boolean()]),
      }),
      {
        type: 'object',
        required: ['a', 'b'],
        additionalProperties: false,
        properties: {
          a: { type: 'string' },
          b: {
            type: 'array',
            items: { type: 'object', required: ['c'], properties: { c: { type: 'number' } } },
          },
          d: { anyOf: [{ type: 'null' }, { type: 'boolean' }] },
        },
      },
    ]
    const value = fc.oneof(json, fc.array(fc.record({ c: json }, { requiredKeys: [] })), fc.string())
    const input = fc.oneof(
      fc.record({ a: value, b: value, d: value }, { requiredKeys: [] }),
      fc.dictionary(fc.string(), json),
    )
    const isJudged = fc.asyncProperty(input, fc.constantFrom(...schemas), async (given, schema) => {
      let ran = 0
      const tool = defineTool({
        name: 'take',
        description: 'Takes.',
        input: schema,
        effect: 'read',
        execute: () => void ran++,
      })
      const verdict = await tool.check(given as JsonObject, callContext)
      expect(ran).toBe(0)
      const [ending] = await signalsOf(tool, given as JsonObject)
      const outcome = ending?.type === 'tool_ended' ? ending.outcome : undefined
      expect([outcome, ran]).toEqual(verdict.kind === 'run' ? ['success', 1] : ['invalid_input', 0])
      const [first = '', ...lines] = (verdict.kind === 'refuse' ? verdict.text : 'none:').split('\n')
      expect(first).toMatch(/:$/)
      expect(lines.length).toBeLessThanOrEqual(9)
      for (const line of lines) expect(line).toMatch(/^- .{3,200}$/su)
    })
    await fc.assert(isJudged, { numRuns: tries(600) })
  })
})
