import { describe, expect, it } from 'vitest'
import {
  ConfigurationError,
  createRuntime,
  defineAgent,
  memoryLedger,
  TallystickError,
} from '@tallystick/core'
import { manualClock, scriptedModel, settle, testTool } from '@tallystick/core/testing'

const sound = { name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'Done.' }]) }

/** Options as plain JavaScript may give them. */
const define = (options: object): unknown => defineAgent({ ...sound, ...options })

describe('defineAgent', () => {
  const refused: Readonly<Record<string, readonly [object, string]>> = {
    'without a name': [{ name: undefined }, 'An agent needs a name'],
    'with an empty name': [{ name: ' ' }, 'An agent needs a name'],
    'without instructions': [{ instructions: undefined }, 'Agent agent needs instructions'],
    'without a model': [{ model: undefined }, 'Agent agent needs a model'],
    'with a model that cannot stream': [{ model: { provider: 'p' } }, 'Agent agent needs a model'],
    'with a model that does not say which it is': [
      { model: { provider: 'p', api: 'a', stream: () => undefined } },
      'does not say its provider, api and modelId',
    ],
    'with a fallback that is no model': [{ fallbacks: [{}] }, 'needs a model'],
    'with a tool that is none': [{ tools: [{ name: 'look' }] }, 'A tool of agent agent is none'],
    'with nothing for a tool': [{ tools: [undefined] }, 'A tool of agent agent is none'],
    'with a tool without a name': [
      { tools: [{ ...testTool({ name: 'x' }), name: '' }] },
      'of agent agent has no name',
    ],
    'with a tool without a description': [
      { tools: [{ ...testTool({ name: 'look' }), description: undefined }] },
      'The tool look of agent agent has no description',
    ],
    'with a tool without a schema': [
      { tools: [{ ...testTool({ name: 'look' }), inputSchema: undefined }] },
      'The tool look of agent agent has no input schema',
    ],
    'with a schema that JSON cannot carry': [
      { tools: [{ ...testTool({ name: 'look' }), inputSchema: { type: 'object', max: 1n } }] },
      'The tool look of agent agent has no input schema',
    ],
    'with a tool of no known effect': [
      { tools: [{ ...testTool({ name: 'look' }), effect: 'both' }] },
      'The tool look of agent agent says effect both; use one of read, write',
    ],
    'with a tool of no known recovery': [
      { tools: [{ ...testTool({ name: 'look' }), recovery: 'hope' }] },
      'The tool look of agent agent says recovery hope; use one of rerun, reconcile, ask, report',
    ],
    'with a tool that cannot reconcile though it says so': [
      { tools: [testTool({ name: 'look', recovery: 'reconcile' })] },
      'The tool look of agent agent says recovery reconcile, but has no function for it',
    ],
    'with two tools of one name': [
      { tools: [testTool({ name: 'look' }), testTool({ name: 'look' })] },
      'Agent agent has two tools named look',
    ],
    'with a limit below nothing': [{ limits: { turnsMax: -1 } }, 'The limit turnsMax of agent agent is -1'],
    'with a limit that is no number': [
      { limits: { tokensMax: '9' } },
      'The limit tokensMax of agent agent is 9',
    ],
    'with a limit that is none': [{ limits: { toolCallsMax: Number.NaN } }, 'is NaN'],
    'with a limit without end': [{ limits: { turnsMax: Infinity } }, 'is Infinity'],
    'with room for no tool at all': [
      { limits: { concurrencyMax: 0 } },
      'The limit concurrencyMax of agent agent is 0',
    ],
    'with a wrong limit for one tool': [
      { limits: { callsMaxByTool: { look: -1 } } },
      'The limit callsMaxByTool.look of agent agent is -1',
    ],
    'with a policy nobody knows': [{ limits: { onLimit: 'pray' } }, 'onLimit of agent agent is pray'],
    'with a retry policy without end': [
      { retry: { attemptsMax: Number.NaN } },
      'retry.attemptsMax of agent agent is NaN',
    ],
    'with a wait that is none': [{ retry: { baseMs: -1 } }, 'retry.baseMs of agent agent is -1'],
    'with no room for an answer': [{ maxOutputTokens: 0 }, 'maxOutputTokens of agent agent is 0'],
  }

  it.each(Object.entries(refused))(
    'refuses an agent %s, and says which and why',
    (_name, [options, message]) => {
      expect(() => define(options)).toThrow(ConfigurationError)
      expect(() => define(options)).toThrow(message)
    },
  )

  it('records what the model is told, and names it by its digest', () => {
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
      defineAgent({ ...sound, tools: [testTool({ name: 'look' })], limits: { turnsMax: 3 } }),
      defineAgent({ ...sound, tools: [] }),
      defineAgent({ ...sound, tools: [look], instructions: 'Act!' }),
      defineAgent({ ...sound, tools: [look], parallelToolCalls: false }),
      defineAgent({ ...sound, tools: [look], model: scriptedModel([], 'scripted-2') }),
    ].map((agent) => agent.definition.digest)
    // Only what the model is told counts: code and limits do not.
    expect(digests[1]).toBe(digests[0])
    expect(new Set(digests).size).toBe(5)
  })
})

describe('createRuntime', () => {
  const runtime = () => createRuntime({ ledger: memoryLedger(), host: { clock: manualClock() } })

  it('refuses to be made without a ledger', () => {
    expect(() => createRuntime({} as never)).toThrow(ConfigurationError)
    expect(() => createRuntime({ ledger: {} as never })).toThrow('createRuntime needs a ledger')
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
  })

  it.each([
    ['nothing to say', ''],
    ['no parts', []],
    ['no input', undefined],
    ['a number', 7],
    ['parts that are none', [{ type: 'text' }]],
    ['parts that JSON cannot carry', [{ type: 'text', text: 'Hi', at: 1n }]],
  ])('refuses a run with %s', (_name, input) => {
    expect(() => runtime().run(defineAgent(sound), input as never)).toThrow(ConfigurationError)
  })

  it('refuses what is no agent, and limits that are none', () => {
    expect(() => runtime().run(undefined as never, 'Go.')).toThrow(ConfigurationError)
    expect(() => runtime().run({ name: 'agent' } as never, 'Go.')).toThrow('defineAgent')
    expect(() => runtime().run(defineAgent(sound), 'Go.', { limits: { turnsMax: -1 } })).toThrow(
      ConfigurationError,
    )
    expect(() => createRuntime({ ledger: memoryLedger(), agents: [{} as never] })).toThrow('defineAgent')
  })

  it('takes message parts, and limits of the run over those of the agent', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ text: 'A cat.' }])
    const agent = defineAgent({ ...sound, model, limits: { turnsMax: 5, toolCallsMax: 5 } })
    const ledger = memoryLedger()
    const parts = [
      { type: 'text', text: 'What is it?' },
      { type: 'image', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
    ] as const
    const run = createRuntime({ ledger, host: { clock } }).run(agent, parts, {
      sessionId: 's1',
      limits: { turnsMax: 2 },
    })
    await settle(clock, run.result)
    expect(model.requests[0]?.messages).toEqual([{ role: 'user', parts }])
    for await (const event of ledger.read(run.id, { toSeq: 1 })) {
      expect(event).toMatchObject({
        type: 'run_started',
        sessionId: 's1',
        limits: { turnsMax: 2, toolCallsMax: 5 },
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
