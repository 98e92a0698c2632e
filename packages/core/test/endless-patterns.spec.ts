import { describe, expect, it } from 'vitest'
import { agentTool, defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'

const model = scriptedModel([])
const withOutput = (output: object) => () =>
  defineAgent({ name: 'desk', description: 'Works.', instructions: 'Work.', model, output: output as never })

describe('given a JSON Schema with a pattern that repeats within what it repeats, when an agent is defined with it', () => {
  it('then it is refused, wherever the pattern stands, before a model writes what it would be tried on', () => {
    for (const pattern of [
      '^(a+)+$',
      '^(?:a|a)*$',
      '(a?){30}a{30}',
      '^((a+)b?)*$',
      '^([a-z]+\\.)*$',
      '(x(a*))+',
    ]) {
      for (const output of [
        { type: 'object', properties: { s: { type: 'string', pattern } } },
        {
          type: 'object',
          properties: { s: { anyOf: [{ type: 'array', items: { type: 'string', pattern } }] } },
        },
        { type: 'object', patternProperties: { [pattern]: { type: 'string' } } },
      ]) {
        expect(withOutput(output)).toThrow(/repeats within what it repeats/)
      }
    }
  })

  it('then others are taken', () => {
    for (const pattern of [
      '^\\d{4}-\\d{2}$',
      '^[^@]+@[^@]+$',
      '^(?:eur|usd)$',
      '^(ab)+$',
      '^\\(a+\\)+$',
      '^[(+]+$',
      '(a|b)?c',
    ]) {
      const output = { type: 'object', properties: { s: { type: 'string', pattern } } }
      expect(withOutput(output)).not.toThrow()
    }
  })

  it('then the input of an agent as a tool is held to the same', () => {
    const agent = defineAgent({ name: 'desk', description: 'Works.', instructions: 'Work.', model })
    const input = { type: 'object', properties: { s: { type: 'string', pattern: '^(a+)+$' } } }
    expect(() => agentTool(agent, { input: input as never, task: () => 'Work.' })).toThrow(/repeats within/)
  })
})
