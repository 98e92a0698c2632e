import { describe, expect, it } from 'vitest'
import { mergeSettings } from '../src/events/model-request.ts'

const flex = { acme: { tier: 'flex', trace: 1 } }

describe('the settings of a run over those of its agent', () => {
  it('are those of the one that has any', () => {
    expect(mergeSettings({ seed: 1 }, undefined)).toEqual({ seed: 1 })
    expect(mergeSettings(undefined, { seed: 2 })).toEqual({ seed: 2 })
    expect(mergeSettings(undefined, undefined)).toBeUndefined()
  })

  it('win each alone; what the run leaves undefined is as the agent says', () => {
    const merged = mergeSettings(
      { seed: 1, topP: 1, stop: ['a'] },
      { seed: 2, topP: undefined, temperature: 0 },
    )
    expect(merged).toStrictEqual({ seed: 2, topP: 1, stop: ['a'], temperature: 0 })
  })

  it('win option by option of each provider', () => {
    const agent = { providerOptions: { ...flex, other: { a: 1 } } }
    const run = { providerOptions: { acme: { tier: 'priority' }, third: { b: 2 } } }
    expect(mergeSettings(agent, run)).toStrictEqual({
      providerOptions: { acme: { tier: 'priority', trace: 1 }, other: { a: 1 }, third: { b: 2 } },
    })
    expect(mergeSettings({ providerOptions: flex }, { seed: 1 })).toStrictEqual({
      ...{ providerOptions: flex, seed: 1 },
    })
    expect(mergeSettings({ seed: 1 }, { providerOptions: flex })).toStrictEqual({
      ...{ providerOptions: flex, seed: 1 },
    })
  })

  it('take nothing that a provider would inherit by its name', () => {
    const run = JSON.parse('{"providerOptions":{"toString":{"a":1},"__proto__":{"b":2}}}') as object
    expect(JSON.stringify(mergeSettings({ providerOptions: flex }, run))).toBe(
      '{"providerOptions":{"acme":{"tier":"flex","trace":1},"toString":{"a":1},"__proto__":{"b":2}}}',
    )
  })
})
