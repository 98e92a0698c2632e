// Patterns of a tool's own JSON Schema, tried on what a model wrote.
import { callTool } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'

type Schema = Parameters<typeof defineTool>[0]['input']

function tool(properties: object, more: object = {}) {
  const input = { type: 'object', properties, ...more } as unknown as Schema
  return defineTool({ name: 'find', description: 'Finds.', input, effect: 'read', execute: () => 'found' })
}

/** What becomes of a call whose field `s` is this text. */
async function outcomeOf(pattern: string, s: string): Promise<string> {
  return (await callTool(tool({ s: { type: 'string', pattern } }), { s })).outcome
}

describe('given a pattern in the JSON Schema of a tool, when a model writes a text for it', () => {
  it('then it takes and refuses what it says', async () => {
    for (const [pattern, fits, not] of [
      ['^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$', 'ada@shop.example', 'ada@shop'],
      ['\\d{4}-\\d{2}', 'on 2026-11 or so', 'in November'],
      ['^\\p{Lu}\\p{Ll}+$', 'Åda', 'åda'],
      ['^(?:[a-z0-9]+\\.)*[a-z]+$', 'www.shop.example', 'www..example'],
      ['^caf\\u00e9$', 'café', 'cafe'],
      ['^a|b$', 'ab', 'ba'],
      ['^.+$', 'a\tb', 'a\rb'],
      ['^[\\s,]+$', ' ,\u00a0\u2028', ' ,\u200b'],
      ['^\\S+\\s\\S+$', 'a\u3000b', 'a b c'],
      ['^a\\.b$', 'a.b', 'a-b'],
      ['^[.]$', '.', 'a'],
    ] as const) {
      expect([pattern, await outcomeOf(pattern, fits), await outcomeOf(pattern, not)]).toEqual([
        pattern,
        'success',
        'invalid_input',
      ])
    }
  })

  it('then it is tried once for each character, however it repeats', async () => {
    const long = `${'a'.repeat(20_000)}!`
    for (const pattern of [
      '^(a+)+$',
      '^(a|a)*$',
      '^(a?){50}a{50}$',
      '^(.*a){20}$',
      '(a*)*b',
      '^(([a-z])+.)+[A-Z]$',
    ]) {
      expect([pattern, await outcomeOf(pattern, long)]).toEqual([pattern, 'invalid_input'])
    }
  })

  it('then what is wrong names the pattern, beside what else is', async () => {
    const find = tool({ s: { type: 'string', pattern: '^a+$', maxLength: 3, format: 'date' } })
    const { text } = await callTool(find, { s: 'bbbb' })
    expect(text).toContain('does not match pattern "^a+$"')
    expect(text).toMatch(/too long/)
    expect(text).toMatch(/format "date"/)
  })

  it('then one within a choice or a reference is tried, too', async () => {
    const find = tool(
      { s: { anyOf: [{ $ref: '#/$defs/id' }, { type: 'null' }] } },
      { $defs: { id: { type: 'string', pattern: '^(x+)+$' } } },
    )
    expect((await callTool(find, { s: 'xx' })).outcome).toBe('success')
    expect((await callTool(find, { s: `${'x'.repeat(40)}!` })).outcome).toBe('invalid_input')
  })

  it('then a property that is named pattern is a property', async () => {
    const find = tool({ pattern: { type: 'string' } }, { required: ['pattern'] })
    expect((await callTool(find, { pattern: '(' })).outcome).toBe('success')
  })
})

describe('given a pattern that could take for ever, when the tool is defined', () => {
  it('then it is refused with what to write', () => {
    for (const pattern of ['^(?=.*\\d).{8,}$', '(a)\\1', '(?<!a)b', '(?<n>a)\\k<n>']) {
      expect(() => tool({ s: { type: 'string', pattern } })).toThrow(/the pattern .* Standard Schema/)
    }
    for (const name of ['^(b+)+$', '^a+b+$', '^(a|b)*$', '(?=a)b']) {
      const more = { patternProperties: { [name]: { type: 'string' } } }
      expect(() => tool({}, more)).toThrow(/the pattern .* Standard Schema/)
    }
  })

  it('then one for names of properties that repeats in one place is taken, and tried on short names', async () => {
    const find = tool(
      {},
      { patternProperties: { '^x-[a-z]+$': { type: 'number' } }, additionalProperties: false },
    )
    expect((await callTool(find, { 'x-size': 3 })).outcome).toBe('success')
    expect((await callTool(find, { 'x-size': 'three' })).outcome).toBe('invalid_input')
    expect((await callTool(find, { [`x-${'a'.repeat(2_000)}`]: 3 })).outcome).toBe('invalid_input')
  })
})
