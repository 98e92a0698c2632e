import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  TallystickError,
} from '@tallystick/core'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'

const sound = { name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'Done.' }]) }

/** Options as plain JavaScript may give them. */
const define = (options: object): unknown => defineAgent({ ...sound, ...options })

describe('defineAgent', () => {
  const refused: Readonly<Record<string, readonly [object, string]>> = {
    'without a name': [{ name: undefined }, 'defineAgent: name is missing'],
    'with an empty name': [{ name: ' ' }, 'name is a text; expected a text that is not empty'],
    'without instructions': [{ instructions: undefined }, 'defineAgent (agent): instructions is missing'],
    'without a model': [{ model: undefined }, 'defineAgent (agent): model is not a model; give one'],
    'with a model that cannot stream': [{ model: { provider: 'p' } }, 'model is not a model; give one'],
    'with a model that does not say which it is': [
      { model: { provider: 'p', api: 'a', stream: () => undefined } },
      'does not say its provider, api and modelId',
    ],
    'with a fallback that is not a model': [{ fallbacks: [{}] }, 'fallbacks[0] is not a model'],
    'with a value that is not a tool': [
      { tools: [{ name: 'look' }] },
      'tools[0] is not a tool; make it with defineTool',
    ],
    'with nothing for a tool': [{ tools: [undefined] }, 'tools[0] is not a tool; make it with defineTool'],
    'with a tool without a name': [
      { tools: [{ ...testTool({ name: 'x' }), name: '' }] },
      'tools[0] has no name',
    ],
    'with a tool without a description': [
      { tools: [{ ...testTool({ name: 'look' }), description: undefined }] },
      'tools[0] (look) has no description',
    ],
    'with a tool without a schema': [
      { tools: [{ ...testTool({ name: 'look' }), inputSchema: undefined }] },
      'tools[0] (look) has no input schema',
    ],
    'with a schema that JSON cannot carry': [
      { tools: [{ ...testTool({ name: 'look' }), inputSchema: { type: 'object', max: 1n } }] },
      'tools[0] (look) has no input schema',
    ],
    'with a tool of no known effect': [
      { tools: [{ ...testTool({ name: 'look' }), effect: 'both' }] },
      "its effect is 'both'; use one of 'read', 'write'",
    ],
    'with a tool of no known recovery': [
      { tools: [{ ...testTool({ name: 'look' }), recovery: 'hope' }] },
      "its recovery is 'hope'; use one of 'rerun', 'reconcile', 'ask', 'report'",
    ],
    'with a tool that cannot reconcile though it says so': [
      { tools: [testTool({ name: 'look', recovery: 'reconcile' })] },
      'tools[0] (look) says recovery reconcile, but has no function for it',
    ],
    'with two tools of one name': [
      { tools: [testTool({ name: 'look' }), testTool({ name: 'look' })] },
      'Agent agent has two tools named look',
    ],
    'with two guardrails of one name': [
      {
        guardrails: [
          { name: 'polite', on: 'input', check: () => 'pass' },
          { name: 'short', on: 'output', check: () => 'pass' },
          { name: 'polite', on: 'output', check: () => 'pass' },
        ],
      },
      'Agent agent has two guardrails named polite, and a ledger could not tell them apart. Rename one.',
    ],
    'with a limit below nothing': [
      { limits: { maxTurns: -1 } },
      'defineAgent (agent): limits.maxTurns is -1; expected a whole number of at least 0',
    ],
    'with a limit that is not a number': [
      { limits: { maxTotalTokens: '9' } },
      "limits.maxTotalTokens is a text, '9'; expected a whole number",
    ],
    'with a value that is not a limit': [{ limits: { maxToolCalls: Number.NaN } }, 'is NaN'],
    'with a limit without end': [{ limits: { maxTurns: Infinity } }, 'is Infinity'],
    'with room for no tool at all': [
      { limits: { maxConcurrency: 0 } },
      'limits.maxConcurrency is 0; expected a whole number of at least 1',
    ],
    'with a wrong limit for one tool': [
      { limits: { maxCallsByTool: { look: -1 } } },
      'limits.maxCallsByTool.look is -1',
    ],
    'with an unknown policy': [
      { limits: { onLimit: 'pray' } },
      "limits.onLimit is 'pray'; use one of 'finalize', 'stop', 'ask'",
    ],
    'with a retry policy without end': [{ retry: { maxAttempts: Number.NaN } }, 'retry.maxAttempts is NaN'],
    'with a value that is not a wait': [{ retry: { baseMs: -1 } }, 'retry.baseMs is -1'],
    'with half an attempt': [{ retry: { maxAttempts: 1.5 } }, 'retry.maxAttempts is 1.5; expected a whole'],
    'with half a repair': [{ maxOutputRepairs: 1.5 }, 'maxOutputRepairs is 1.5; expected a whole number'],
    'with half a token': [{ maxOutputTokens: 100.5 }, 'maxOutputTokens is 100.5; expected a whole number'],
    'with half a message kept': [
      { compaction: { maxContextTokens: 10, keepMessages: 1.5 } },
      'compaction.keepMessages is 1.5; expected a whole number',
    ],
    'with no room for an answer': [{ maxOutputTokens: 0 }, 'maxOutputTokens is 0'],
  }

  it.each(Object.entries(refused))(
    'refuses an agent %s, and says which and why',
    (_name, [options, message]) => {
      expect(() => define(options)).toThrow(ConfigurationError)
      expect(() => define(options)).toThrow(message)
    },
  )

  const least: Readonly<Record<string, number>> = {
    ...{ 'limits.maxTurns': 0, 'limits.maxToolCalls': 0, 'limits.maxCostUsd': 0, 'limits.maxConcurrency': 1 },
    ...{ 'limits.maxCallsByTool.look': 0, 'limits.graceMs': 0, 'retry.maxAttempts': 1, 'retry.baseMs': 0 },
    ...{ 'retry.capMs': 0, 'retry.maxRetryAfterMs': 0, 'retry.maxTotalMs': 0, 'timeouts.idleMs': 1 },
    ...{ 'timeouts.totalMs': 1, 'compaction.maxContextTokens': 0, 'compaction.keepMessages': 0 },
    ...{ maxOutputTokens: 1, maxOutputRepairs: 0, 'modelSettings.temperature': 0, 'modelSettings.topP': 0 },
  }

  it.each(Object.entries(least))('takes the number %s from %d on', (path, min) => {
    const [first = '', ...rest] = path.split('.')
    const needed = first === 'compaction' ? { maxContextTokens: 1, keepMessages: 1 } : {}
    const withNumber = (value: number): unknown => {
      const inside = rest.reduceRight<unknown>((each, name) => ({ [name]: each }), value)
      return define({ [first]: typeof inside === 'number' ? inside : { ...needed, ...(inside as object) } })
    }
    expect(() => withNumber(min)).not.toThrow()
    expect(() => withNumber(min - 1)).toThrow(`defineAgent (agent): ${path} is ${min - 1}; expected`)
  })

  it('records what the model reads, and names it by its digest', () => {
    const look = testTool({ name: 'look' })
    const { definition } = defineAgent({ ...sound, tools: [look] })
    expect(definition).toMatchObject({
      model: { provider: 'scripted', api: 'script', modelId: 'scripted-1' },
      instructions: 'Act.',
      tools: [{ name: 'look', description: 'The test tool look.', inputSchema: { type: 'object' } }],
      parallelToolCalls: true,
    })
    const digests = [
      defineAgent({ ...sound, tools: [look] }),
      defineAgent({ ...sound, tools: [testTool({ name: 'look' })], limits: { maxTurns: 3 } }),
      defineAgent({ ...sound, tools: [] }),
      defineAgent({ ...sound, tools: [look], instructions: 'Act!' }),
      defineAgent({ ...sound, tools: [look], parallelToolCalls: false }),
      defineAgent({ ...sound, tools: [look], model: scriptedModel([], 'scripted-2') }),
    ].map((agent) => agent.definition.digest)
    // What the model reads counts, and how its runs are driven; code does not.
    expect(defineAgent({ ...sound, tools: [testTool({ name: 'look' })] }).definition.digest).toBe(digests[0])
    expect(new Set(digests).size).toBe(6)
  })
})

describe('createRuntime', () => {
  const runtime = () => createRuntime({ ledger: memoryLedger(), host: { clock: manualClock() } })

  it('refuses to be made without a ledger', () => {
    expect(() => createRuntime({} as never)).toThrow(ConfigurationError)
    expect(() => createRuntime({ ledger: {} as never })).toThrow(
      'createRuntime: ledger is an object; expected a ledger, such as memoryLedger()',
    )
  })

  it('refuses two different agents of one name, and takes the same one twice', () => {
    const [one, other] = [defineAgent(sound), defineAgent({ ...sound, instructions: 'Rest.' })]
    expect(() => createRuntime({ ledger: memoryLedger(), agents: [one, other] })).toThrow(
      'Two different agents are named agent',
    )
    const twice = runtime()
    twice.run(one, 'Go.')
    expect(() => twice.run(other, 'Go.')).toThrow('Two different agents are named agent')
    expect(twice.run(defineAgent(sound), 'Go.').id).toMatch(/^[0-9a-f-]{36}$/)
    const [look, sameName] = [testTool({ name: 'look' }), testTool({ name: 'look' })].map((tool) =>
      defineAgent({ ...sound, name: 'looker', tools: [tool] }),
    )
    expect(() => createRuntime({ ledger: memoryLedger(), agents: [look!, sameName!] })).toThrow(
      'Two agents of different code are named looker',
    )
  })

  it.each([
    ['nothing to say', ''],
    ['no parts', []],
    ['no input', undefined],
    ['a number', 7],
    ['parts that are not parts', [{ type: 'text' }]],
    ['parts that JSON cannot carry', [{ type: 'text', text: 'Hi', at: 1n }]],
  ])('refuses a run with %s', (_name, input) => {
    expect(() => runtime().run(defineAgent(sound), input as never)).toThrow(ConfigurationError)
  })

  it('refuses what is not an agent, and values that are not limits', () => {
    expect(() => runtime().run(undefined as never, 'Go.')).toThrow(ConfigurationError)
    expect(() => runtime().run({ name: 'agent' } as never, 'Go.')).toThrow('defineAgent')
    expect(() => runtime().run(defineAgent(sound), 'Go.', { limits: { maxTurns: -1 } })).toThrow(
      ConfigurationError,
    )
    expect(() => createRuntime({ ledger: memoryLedger(), agents: [{} as never] })).toThrow('defineAgent')
  })

  it('takes message parts, and limits of the run over those of the agent', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ text: 'A cat.' }])
    const agent = defineAgent({ ...sound, model, limits: { maxTurns: 5, maxToolCalls: 5 } })
    const ledger = memoryLedger()
    const parts = [
      { type: 'text', text: 'What is it?' },
      { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
    ] as const
    const run = createRuntime({ ledger, host: { clock } }).run(agent, parts, {
      sessionId: 's1',
      limits: { maxTurns: 2 },
    })
    await waitUntilSettled(clock, run.result)
    expect(model.requests[0]?.messages).toEqual([{ role: 'user', parts }])
    for await (const event of ledger.read(run.id, { toSeq: 1 })) {
      expect(event).toMatchObject({
        type: 'run_started',
        sessionId: 's1',
        limits: { maxTurns: 2, maxToolCalls: 5 },
      })
    }
    expect.assertions(2)
  })
})

describe('every error', () => {
  it('is a TallystickError with a stable code', () => {
    expect(new ConfigurationError('x')).toBeInstanceOf(TallystickError)
    expect(new ConfigurationError('x')).toMatchObject({ name: 'ConfigurationError', code: 'configuration' })
  })
})
