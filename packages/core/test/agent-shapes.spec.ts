// What the parts of an agent may look like, one shape at a time.
import { defineAgent, handBack, handoff, type Model } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import type { Price } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { combinePolicies, type PolicyCall, type PolicyVerdict } from '../src/tools/check-calls.ts'
import { toRecordedSettings } from '../src/events/model-settings-check.ts'
import { extractJson } from '../src/tools/tool-schema.ts'
import { modelPrice } from '../src/models/prices.ts'

const model = scriptedModel([])
const sound = { name: 'agent', instructions: 'Act.', model }
const define = (options: object): unknown => defineAgent({ ...sound, ...options })
const other = defineAgent({ ...sound, name: 'other' })
const check = (): 'pass' => 'pass'
const guard = (more: object): object => ({ guardrails: [{ name: 'g', on: 'output', check, ...more }] })
const settings = (modelSettings: object): object => ({ modelSettings })
const called = (more: object): object => ({ model: { ...model, ...more } as Model })
const standard = { '~standard': { version: 1, vendor: 'mine', validate: () => ({ value: 1 }) } }
const converting = {
  '~standard': { ...standard['~standard'], jsonSchema: { input: () => ({ type: 'object' }) } },
}

describe('an agent', () => {
  it.each<readonly [string, object]>([
    ['that keeps refusals in its history', { onRefusal: { history: 'keep' } }],
    ['that leaves refusals out', { onRefusal: { history: 'leave_out', fallback: false } }],
    ['that hands over to an agent', { handoffs: [other] }],
    ['that hands over by a target', { handoffs: [handoff(other)] }],
    ['that hands back', { handoffs: [handBack('desk', { description: 'Back.' })] }],
    ['that hands over to whom a function names', { handoffs: () => [other] }],
    ['with a schema that is an object', { output: converting }],
    ['with a schema that is a function', { output: Object.assign(() => {}, converting) }],
    ['with a schema that lets everything pass', { output: {} }],
    ...['input', 'output', 'tool_input', 'tool_output'].map((on): [string, object] => [
      `with a guardrail on ${on}`,
      guard({ on }),
    ]),
    ['with a guardrail beside the model call', guard({ on: 'input', beside: true })],
    ['with a guardrail that has no time', guard({ timeoutMs: 0 })],
    ['with the whole probability', settings({ topP: 1 })],
    ['with words to stop at', settings({ stop: ['END', ' '] })],
    ['with a seed', settings({ seed: -3 })],
    ['with options of a provider', settings({ providerOptions: { mine: { depth: [1, null] } } })],
    ['whose model never searches', called({ maxWebSearches: 0 })],
    ['whose model searches three times', called({ maxWebSearches: 3 })],
    ['whose model searches as it likes', called({ maxWebSearches: 'unbounded' })],
    ['with a list of no tools', { tools: [], fallbacks: [], guardrails: [], handoffs: [] }],
  ])('may be one %s', (_shape, options) => {
    expect(() => define(options)).not.toThrow()
  })

  it.each<readonly [string, object, string]>([
    ['that forgets refusals', { onRefusal: { history: 'forget' } }, "onRefusal.history is 'forget'"],
    ['that hands over to nothing', { handoffs: [null] }, 'handoffs[0] is null; expected an agent'],
    ['that hands over to a tool', { handoffs: [{ tool: {} }] }, 'handoffs[0] is an object'],
    ['that hands over to a name', { handoffs: [{ to: 'x' }] }, 'handoffs[0] is an object'],
    ['that hands over to a definition', { handoffs: [{ definition: {} }] }, 'handoffs[0] is an object'],
    ['that hands over to handoffs', { handoffs: [{ handoffs: [] }] }, 'handoffs[0] is an object'],
    ['without a schema, by null', { output: null }, 'output is null; expected a schema'],
    ['with a text for a schema', { output: 'object' }, 'output is a text; expected a schema'],
    ['with a guardrail on everything', guard({ on: 'all' }), "guardrails[0].on is 'all'"],
    ['with a guardrail on nothing', guard({ on: undefined }), 'guardrails[0].on is missing'],
    [
      'with a guardrail beside no model call',
      guard({ beside: true }),
      'guardrails[0].beside is not an option',
    ],
    ['with a guardrail of less than no time', guard({ timeoutMs: -1 }), 'guardrails[0].timeoutMs is -1'],
    ['with a guardrail without a name', guard({ name: '' }), 'guardrails[0].name is an empty text'],
    ['with a guardrail that does nothing', guard({ check: 'pass' }), 'guardrails[0].check is a text'],
    ['with more than the whole probability', settings({ topP: 1.01 }), 'modelSettings.topP is 1.01'],
    ['with a probability in words', settings({ topP: '0.5' }), 'modelSettings.topP is a text'],
    ['with nothing to stop at', settings({ stop: [''] }), 'modelSettings.stop[0] is an empty text'],
    ['with a number to stop at', settings({ stop: [7] }), 'modelSettings.stop[0] is 7'],
    ['with half a seed', settings({ seed: 1.5 }), 'modelSettings.seed is 1.5; expected a whole number'],
    [
      'with options that JSON cannot carry',
      settings({ providerOptions: { mine: { at: 1n } } }),
      'modelSettings.providerOptions.mine is an object',
    ],
    ['whose model searches less than never', called({ maxWebSearches: -1 }), 'neither a whole number from 0'],
    ['whose model searches half a time', called({ maxWebSearches: 0.5 }), 'neither a whole number from 0'],
    ['whose model searches often', called({ maxWebSearches: 'often' }), 'neither a whole number from 0'],
    ['whose model has no provider', called({ provider: undefined }), 'does not say its provider, api and'],
    ['whose model has no api', called({ api: undefined }), 'does not say its provider, api and modelId'],
    ['whose model has no id', called({ modelId: undefined }), 'does not say its provider, api and modelId'],
    ['with a tool that only runs', { tools: [{ run: () => {} }] }, 'tools[0] is not a tool; make it with'],
    [
      'with a tool that only checks',
      { tools: [{ check: () => {} }] },
      'tools[0] is not a tool; make it with',
    ],
    [
      'with a tool that is executed',
      { tools: [{ name: 'x', execute: () => {} }] },
      'make it with defineTool of @tallystick/tools, with effect, input and execute',
    ],
    [
      'with a tool whose name is a number',
      { tools: [{ ...testTool({ name: 'x' }), name: 7 }] },
      'tools[0] has no name, so no model could ask for it',
    ],
  ])('may be none %s', (_shape, options, message) => {
    expect(() => define(options)).toThrow(message)
  })

  it('whose function names a wrong target is refused when it is asked for targets', () => {
    const later = defineAgent({ ...sound, handoffs: (() => ['x']) as never })
    expect(() => later.handoffs).toThrow(
      'handoffs of the agent agent: its answer[0] is a text; expected an agent made',
    )
    const tool = testTool({ name: 'transfer_to_other' })
    expect(() => defineAgent({ ...sound, tools: [tool], handoffs: [other] }).tools).toThrow(
      'Agent agent has two tools named transfer_to_other',
    )
  })

  it('asks only once whom it hands over to', () => {
    let asked = 0
    const asking = defineAgent({
      ...sound,
      handoffs: () => {
        asked++
        return [other]
      },
    })
    expect(asked).toBe(0)
    expect([asking.handoffs.length, asking.tools.length, asking.definition.handoffs?.length]).toEqual([
      1, 1, 1,
    ])
    expect(asked).toBe(1)
  })
})

describe('a JSON Schema of an answer', () => {
  it.each([
    ...[{ type: 'object' }, { enum: ['a'] }, { const: 1 }, { properties: {} }, { required: [] }],
    ...[{ additionalProperties: false }, { patternProperties: {} }, { items: {} }, { prefixItems: [] }],
    ...[{ anyOf: [{}] }, { oneOf: [{}] }, { allOf: [{}] }, { not: {} }, { if: {} }, { $defs: {} }],
    ...[{ definitions: {} }, { $ref: '#/$defs/a', $defs: { a: {} } }, { title: 'x', type: 'string' }],
  ])('may be %j', (output) => {
    const message = ((): string => {
      try {
        define({ output })
        return 'taken'
      } catch (error) {
        return String(error)
      }
    })()
    expect(message).not.toContain('none that a JSON Schema has')
  })

  it('has a keyword: where no field is a keyword, the first five fields are named', () => {
    const fields = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => [name, 'string']))
    expect(() => define({ output: fields })).toThrow('has the fields a, b, c, d, e, but none that a JSON')
    expect(() => define({ output: { $ref: '#/x' } })).not.toThrow('none that a JSON Schema has')
  })

  it('comes from a schema that can be told to a model', () => {
    const telling = (jsonSchema: unknown): object => ({
      output: { '~standard': { ...standard['~standard'], ...(jsonSchema as object) } },
    })
    const input = (made: () => unknown): object => telling({ jsonSchema: { input: made } })
    const nothing = 'The schema of the output of agent agent (mine) gives no JSON Schema'
    expect(() => define(telling({}))).toThrow(nothing)
    expect(() => define(telling({ jsonSchema: {} }))).toThrow(nothing)
    expect(() => define(input(() => 'object'))).toThrow(nothing)
    expect(() => define(input(() => ({ at: 1n })))).toThrow(nothing)
    const failing = input(() => {
      throw new Error('no dates')
    })
    expect(() => define(failing)).toThrow('(mine) cannot be described to a model: no dates. Use only')
    const strange = input(() => {
      // oxlint-disable-next-line typescript/only-throw-error -- plain JavaScript may
      throw 'never'
    })
    expect(() => define(strange)).toThrow('(mine) cannot be described to a model: never. Use only')
    const targets: unknown[] = []
    const agent = define(
      telling({
        jsonSchema: {
          input: (options: unknown) => {
            targets.push(options)
            return { $schema: 'x', type: 'object' }
          },
        },
      }),
    ) as { output: { jsonSchema: unknown } }
    expect(agent.output.jsonSchema).toEqual({ type: 'object' })
    expect(targets).toEqual([{ target: 'draft-2020-12' }])
  })

  it('that cannot be checked against says why', () => {
    expect(() => define({ output: { type: 'object', not: 7 } })).toThrow(
      /^The JSON Schema of the output of agent agent cannot be checked against: .+\. Give a Standard Schema/,
    )
    expect(() => define({ output: { type: 'object', at: 1n } })).toThrow(
      'The output of agent agent is not a schema',
    )
  })
})

describe('the JSON of an answer', () => {
  it.each<readonly [string, unknown]>([
    ['5', 5],
    [' {"a":1} ', { a: 1 }],
    ['nothing', undefined],
    ['```\n{"a":1}\n```', { a: 1 }],
    ['```json\n{"a":1}\n```', { a: 1 }],
    ['Here: ```JSON \r\n{"a":1}\n``` it is.', { a: 1 }],
    ['```js\n{"a":1}\n```', undefined],
    ['```{"a":1}```', { a: 1 }],
    ['```\n{"a":1}', undefined],
    ['```\n{"a":"```"}\n```', { a: '```' }],
    ['', undefined],
  ])('of %j is %j', (text, value) => {
    expect(extractJson(text)).toEqual(value)
  })
})

describe('settings of a model', () => {
  it('are recorded where there are some', () => {
    expect(toRecordedSettings(undefined)).toBeUndefined()
    expect(toRecordedSettings({})).toBeUndefined()
    expect(toRecordedSettings({ temperature: undefined })).toBeUndefined()
    expect(toRecordedSettings({ temperature: 0, seed: undefined })).toStrictEqual({ temperature: 0 })
    expect(toRecordedSettings({ temperature: 0, seed: 1 })).toStrictEqual({ temperature: 0, seed: 1 })
  })
})

describe('several policies about a call', () => {
  const call = {} as PolicyCall
  const judged = async (...verdicts: readonly PolicyVerdict[]): Promise<PolicyVerdict | undefined> =>
    await combinePolicies(...verdicts.map((verdict) => () => verdict))?.(call)

  it('say what the strictest says, the first of those that are as strict', async () => {
    const [no, never] = [{ deny: 'no' }, { deny: 'never' }]
    const [why, how] = [{ ask: 'why?' }, { ask: 'how?' }]
    expect(await judged('run', 'ask', why, no, never)).toEqual(no)
    expect(await judged(never, 'run')).toEqual(never)
    expect(await judged('run', 'ask', why, how)).toEqual(why)
    expect(await judged('run', 'ask', 'run')).toBe('ask')
    expect(await judged('run', 'run')).toBe('run')
  })

  it('are one where there is one, and absent where there is no policy', async () => {
    const policy = (): 'ask' => 'ask'
    expect(combinePolicies(undefined, policy)).toBe(policy)
    expect(combinePolicies(policy, undefined)).toBe(policy)
    expect(combinePolicies(undefined, undefined)).toBeUndefined()
    expect(combinePolicies()).toBeUndefined()
    const seen: unknown[] = []
    const look = (asked: unknown): 'run' => {
      seen.push(asked)
      return 'run'
    }
    await combinePolicies(look, undefined, look)?.(call)
    expect(seen).toEqual([call, call])
  })
})

describe('a price', () => {
  const price: Price = { inputUsd: 3, outputUsd: 15 }
  const rates = [
    'inputUsd',
    'outputUsd',
    'cacheReadUsd',
    'cacheWriteUsd',
    'cacheWriteLongUsd',
    'webSearchUsd',
  ]
  const long = (...bounds: readonly number[]): object => ({
    longInput: bounds.map((aboveInputTokens) => ({ ...price, aboveInputTokens })),
  })

  it.each(rates)('has a rate %s from 0 on, and not without end', (rate) => {
    const fault = (value: unknown) => modelPrice({ ...price, [rate]: value })
    expect(fault(0)).toBeUndefined()
    const most = 1_000_000
    const expected = /US dollars from 0 to (\d+)/.exec(fault(-1)?.what ?? '')?.[1]
    expect(fault(Number(expected))).toBeUndefined()
    expect(fault(Number(expected) + 1)?.path).toBe(rate)
    expect(Number(expected)).toBeLessThanOrEqual(most * 1_000)
    for (const wrong of [-1, Number.NaN, Infinity, '3', null]) expect(fault(wrong)?.path).toBe(rate)
  })

  it('has rates for long inputs in ascending order', () => {
    const fault = (bounds: readonly number[]) => modelPrice({ ...price, ...long(...bounds) })
    expect(fault([])).toBeUndefined()
    expect(fault([0])).toBeUndefined()
    expect(fault([100, 200, 300])).toBeUndefined()
    expect(fault([-1])?.path).toBe('longInput[0].aboveInputTokens')
    expect(fault([200, 100])?.what).toMatch(/^has the bounds 200, 100; give the rates/)
    expect(fault([100, 100])?.what).toMatch(/^has the bounds 100, 100; give the rates/)
    expect(fault([100, 300, 200])?.what).toMatch(/^has the bounds 100, 300, 200; give the rates/)
  })

  it.each([null, 3, [], [price], 'free'])('is not %j', (value) => {
    expect(modelPrice(value)?.what).toMatch(/expected US dollars for a million tokens/)
  })
})
