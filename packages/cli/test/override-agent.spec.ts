import { defineAgent, type Agent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import type { AgentOverrides } from '../src/command/arguments.ts'
import { hasOverrides, overrideAgent, overrideArguments } from '../src/drive/agents.ts'

const named = (modelId: string, provider = 'acme') => ({ ...scriptedModel([], modelId), provider })
const withStream = (modelId: string, provider?: string) => {
  const model = scriptedModel([], modelId)
  return { ...named(modelId, provider), stream: model.stream.bind(model) }
}
const [large, small, other] = [withStream('large'), withStream('small'), withStream('other', 'else')]
const expert = defineAgent({ name: 'expert', instructions: 'Know.', model: small })
const agent = defineAgent({
  ...{ name: 'front', instructions: 'Help.', model: large, handoffs: [expert] },
  tools: ['look', 'pay', 'send'].map((name) => testTool({ name })),
}) as Agent<unknown>
const configured = { agents: [agent, expert] as Agent<unknown>[], models: [other] }
const overridden = (overrides: AgentOverrides): Agent<unknown> => overrideAgent(agent, overrides, configured)
const toolsOf = ({ tools, definition }: Agent<unknown>): readonly (readonly string[])[] =>
  [tools, definition.tools].map((list) => list.map(({ name }) => name))

describe('what a command changes in an agent', () => {
  it('is nothing where nothing is given: the agent stays the same one', () => {
    expect(overridden({})).toBe(agent)
    expect(hasOverrides({})).toBe(false)
    const each = [{ instructions: 'a' }, { model: 'small' }, { withoutTool: ['pay'] }]
    expect(each.map(hasOverrides)).toEqual([true, true, true])
  })

  it('is repeated to the command that continues the run', () => {
    expect(overrideArguments({})).toEqual([])
    expect(
      overrideArguments({ instructions: 'a.txt', model: 'small', withoutTool: ['look', 'pay'] }),
    ).toEqual([
      ...['--instructions', 'a.txt', '--model', 'small', '--without-tool', 'look', '--without-tool', 'pay'],
    ])
  })

  it('is the model, by its id alone or with its provider, of any that is configured', () => {
    for (const [given, model] of [
      ['small', small],
      ['acme/small', small],
      ['else/other', other],
      ['large', large],
    ] as const) {
      const changed = overridden({ model: given })
      expect(changed.model).toBe(model)
      expect(changed.definition.model).toEqual({
        ...{ provider: model.provider, api: model.api, modelId: model.modelId },
      })
      expect(changed.instructions).toBe('Help.')
    }
    expect(() => overridden({ model: 'acme/other' })).toThrow(
      'The configuration has no model acme/other. It has: other, large, small. Add others to its models',
    )
  })

  it('is a tool less, for the model and on record', () => {
    const kept = ['look', 'send', 'transfer_to_expert']
    const without = overridden({ withoutTool: ['pay'] })
    expect(toolsOf(without)).toEqual([kept, kept])
    expect(JSON.stringify(without.definition)).not.toContain('"pay"')
    expect([without.handoffs, without.definition.handoffs].map((list) => list?.length)).toEqual([1, 1])
    expect(overridden({ withoutTool: ['look', 'pay', 'send', 'transfer_to_expert'] }).tools).toEqual([])
    expect(agent.tools).toHaveLength(4)
  })

  it('is an agent less that it may hand over to, by the name of the tool', () => {
    const alone = overridden({ withoutTool: ['transfer_to_expert'] })
    expect(toolsOf(alone)[0]).toEqual(['look', 'pay', 'send'])
    expect([alone.handoffs, alone.definition.handoffs]).toEqual([[], []])
  })

  it('names the first tool that the agent does not have, and those that it has', () => {
    expect(() => overridden({ withoutTool: ['pay', 'weigh', 'count'] })).toThrow(
      'Agent front has no tool weigh. Its tools: look, pay, send, transfer_to_expert.',
    )
    expect(() => overrideAgent(expert as Agent<unknown>, { withoutTool: ['look'] }, configured)).toThrow(
      'Agent expert has no tool look. Its tools: none.',
    )
  })

  it('is on record under a digest of its own, the same one for the same change', () => {
    const [one, two] = [overridden({ model: 'small' }), overridden({ withoutTool: ['pay'] })]
    expect(new Set([agent, one, two].map(({ definition }) => definition.digest)).size).toBe(3)
    expect(overridden({ model: 'small' }).definition.digest).toBe(one.definition.digest)
    // What is given as it was makes no other definition.
    expect(overridden({ model: 'large' }).definition).toEqual(agent.definition)
  })
})
