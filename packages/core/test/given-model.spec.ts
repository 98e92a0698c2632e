// The definition of an agent in a run that was given a model, and the models that a runtime finds by their names.
import { describe, expect, it } from 'vitest'
import { applyGivenModel } from '../src/events/agent-definition.ts'
import { KnownModels } from '../src/agent/registry.ts'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { stage } from './stage.ts'

const ref = (modelId: string) => ({ provider: 'p', api: 'a', modelId })
const own = ref('own')
const pin = (modelId: string) => ({ model: ref(modelId), options: { of: modelId } })
const definition = {
  ...{ name: 'agent', digest: 'd', instructions: 'x', tools: [], model: own },
  policy: { limits: {}, models: ['own', 'fallback', 'sums', 'given'].map(pin) },
}
const inRun = (more: object, given: object) =>
  applyGivenModel({ ...definition, ...more } as never, { model: ref('given'), ...given })

describe('the definition of an agent in a run that was given a model', () => {
  it('is the same without one, and where nothing changes', () => {
    expect(applyGivenModel(definition as never, undefined)).toBe(definition)
    const plain = { ...definition, policy: { limits: {} } } as never
    expect(applyGivenModel(plain, { model: own })).toBe(plain)
  })

  it('has the price and the searches of the given model, and none of its own', () => {
    const mine = { price: { inputUsd: 1 }, maxWebSearches: 3 }
    const changed = inRun(mine, { price: { inputUsd: 2 }, maxWebSearches: 5 })
    expect(changed).toMatchObject({ model: ref('given'), price: { inputUsd: 2 }, maxWebSearches: 5 })
    expect(changed.digest).not.toBe('d')
    for (const given of [{}, { maxWebSearches: 0 }]) {
      expect(inRun(mine, given)).not.toHaveProperty('price')
      expect(inRun(mine, given)).not.toHaveProperty('maxWebSearches')
    }
  })

  it('has the fallbacks but for the given model', () => {
    const fallbacks = ['given', 'fallback'].map((modelId) => ({ model: ref(modelId) }))
    expect(inRun({ fallbacks }, {}).fallbacks).toEqual([{ model: ref('fallback') }])
    expect(inRun({ fallbacks: fallbacks.slice(0, 1) }, {})).not.toHaveProperty('fallbacks')
  })

  it('says what the adapters of the models that may be called are set to', () => {
    const pinned = (more: object, given: object) => inRun(more, given).policy?.models
    expect(pinned({}, {})).toEqual([pin('fallback'), pin('sums')])
    expect(pinned({}, { options: { of: 'run' } })).toEqual([
      ...[{ model: ref('given'), options: { of: 'run' } }, pin('fallback'), pin('sums')],
    ])
    expect(pinned({ fallbacks: [{ model: own }] }, {})).toEqual([pin('own'), pin('fallback'), pin('sums')])
    expect(pinned({ summarizer: { model: own } }, {})).toEqual([pin('own'), pin('fallback'), pin('sums')])
    expect(pinned({ policy: { limits: {} } }, {})).toBeUndefined()
    expect(inRun({ policy: undefined }, {})).not.toHaveProperty('policy.models')
    expect(pinned({ policy: { limits: {}, models: [pin('own')] } }, {})).toBeUndefined()
  })
})

describe('the models that a runtime knows', () => {
  const model = (modelId: string) => scriptedModel([], modelId)
  const named = (modelId: string) => ({ provider: 'scripted', api: 'script', modelId })

  it('are those that were given, the last of one name first, and all of its agents', () => {
    const [first, second, third] = [model('a'), model('a'), model('b')]
    const [main, fallback, summing, shadowed] = [model('m'), model('f'), model('s'), model('a')]
    const agents = {
      all: () => [
        { model: main, fallbacks: [fallback], summarizer: summing },
        { model: shadowed, fallbacks: [] },
      ],
    }
    const known = new KnownModels(agents as never, [first])
    expect(known.find(named('a'))).toBe(first)
    known.add(third)
    known.add(second)
    expect(known.find(named('a'))).toBe(second)
    expect(known.find(named('b'))).toBe(third)
    expect(['m', 'f', 's'].map((name) => known.find(named(name)))).toEqual([main, fallback, summing])
    expect(known.find(named('none'))).toBeUndefined()
  })
})

describe('a run that was given a model', () => {
  it('is driven to its end with that one, though another is given to its resume meanwhile', async () => {
    let open = (): void => {}
    const until = new Promise<void>((resolve) => (open = resolve))
    const call = { toolCalls: [{ name: 'look', input: {} }] }
    const [given, other] = [
      scriptedModel([{ ...call, until }, { text: 'Seen.' }], 'given'),
      scriptedModel([{ text: 'Other.' }], 'other'),
    ]
    const { runtime, agent, waitUntilSettled } = stage({ tools: [testTool({ name: 'look' })] })
    const run = runtime.run(agent, 'Look.', { model: given })
    await new Promise((resolve) => run.events$.subscribe(resolve))
    const resumed = runtime.resume(run.id, { model: other }).result.catch((error: unknown) => error)
    open()
    expect(await waitUntilSettled(run.result)).toMatchObject({ reason: 'answered', text: 'Seen.' })
    await waitUntilSettled(resumed)
    expect([given, other].map(({ requests }) => requests.length)).toEqual([2, 0])
  })
})
