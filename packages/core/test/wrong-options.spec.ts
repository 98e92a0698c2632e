// What is given in plain JavaScript, where no compiler looks.
import { describe, expect, it } from 'vitest'
import {
  type AgentOptions,
  agentTool,
  ConfigurationError,
  createRuntime,
  defineAgent,
  defineGuardrail,
  handBack,
  handoff,
  memoryLedger,
  type Runtime,
} from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import { manualClock, scriptedModel, waitUntilSettled, testTool } from '@tallystick/testkit'
import { stage } from './stage.ts'

const sound = { name: 'agent', instructions: 'Act.', model: scriptedModel([{ text: 'Done.' }]) }
const agent = defineAgent({ ...sound, description: 'Acts.' })
const define = (options: object) => () => defineAgent({ ...sound, ...options })
const runtime = (options: object = {}): Runtime =>
  createRuntime({ ledger: memoryLedger(), host: { clock: manualClock() }, ...options })
const run = (options: object) => () => runtime().run(agent, 'Go.', options)

const misspelt: readonly (readonly [string, () => unknown, string])[] = [
  ['a limit by another name', define({ limits: { maxSteps: 3 } }), 'Did you mean limits.maxTurns?'],
  ['a limit with a slip', define({ limits: { maxTurn: 3 } }), 'Did you mean limits.maxTurns?'],
  ['instructions by another name', define({ system: 'Act.' }), 'Did you mean instructions?'],
  ['a maximum in the wrong place', define({ maxTurns: 3 }), 'Did you mean limits.maxTurns?'],
  ['a word that is near one', define({ guardrail: [] }), 'Did you mean guardrails?'],
  ['a wait by half its name', define({ timeouts: { idle: 5 } }), 'Did you mean timeouts.idleMs?'],
  ['a compaction', define({ compaction: { maxContextToken: 5, keepMessages: 1 } }), 'maxContextTokens?'],
  ['a session', run({ session: 's1' }), 'run: session is not an option. Did you mean sessionId?'],
  ['limits of a run', run({ limits: { maxTokens: 5 } }), 'Did you mean limits.maxTotalTokens?'],
  ['a branch', run({ from: { runId: 'r', seq: 3 } }), 'from.seq is not an option. Did you mean from.atSeq?'],
  ['agents', () => runtime({ agent }), 'createRuntime: agent is not an option. Did you mean agents?'],
  ['a fork', () => runtime().fork('r', { at: 3 } as never), 'fork: at is not an option. Did you mean atSeq?'],
  [
    'a choice',
    () => runtime({ onDrift: 'refused' }),
    "use one of 'continue', 'refuse'. Did you mean 'refuse'?",
  ],
  ['a tool of an agent', () => agentTool(agent, { efect: 'read' } as never), 'Did you mean effect?'],
  ['a handoff', () => handoff(agent, { tool: 'x' } as never), 'Did you mean toolName?'],
  ['a guardrail', () => defineGuardrail({ name: 'g', on: 'output', chek: () => 'pass' } as never), 'check?'],
]

const misshaped: readonly (readonly [string, () => unknown, string])[] = [
  ['one tool for a list', define({ tools: testTool({ name: 'x' }) }), 'tools is an object; expected a list'],
  ['tools by name', define({ tools: { x: testTool({ name: 'x' }) } }), 'tools is an object; expected a list'],
  [
    'a tool of another library',
    define({ tools: [{ execute: () => 1 }] }),
    'tools[0] is not a tool; make it with',
  ],
  ['limits in a Map', define({ limits: new Map([['maxTurns', 2]]) }), 'limits is a Map; expected an object'],
  ['limits in a Set', define({ limits: new Set() }), 'limits is a Set; expected an object'],
  ['a Date for limits', define({ limits: new Date(0) }), 'limits is a Date; expected an object'],
  ['a Date that is none', define({ limits: new Date(Number.NaN) }), 'limits is an invalid Date; expected'],
  ...[undefined, null].map(
    (input) =>
      [
        `the input ${input}`,
        () => runtime().run(agent, input as never),
        'A run needs input: a text',
      ] as const,
  ),
  [
    'a limit of a prototype',
    define({ limits: Object.create({ maxTurns: 2 }) }),
    'limits.maxTurns is inherited from a prototype; expected a field of the object itself',
  ],
  ['a name for an agent', define({ handoffs: ['x'] }), 'handoffs[0] is a text; expected an agent made with'],
  ['a model as text', define({ model: 'gpt-5.4' }), 'model is a text; give a model, such as anthropic'],
  [
    'a model of the AI SDK',
    define({ model: { doStream: () => 1, modelId: 'm' } }),
    'wrap it with fromAiSdk(…)',
  ],
  ['an adapter that was not called', define({ model: () => 1 }), 'model is a function; call it'],
  ['a shape for a schema', define({ output: { a: 'string' } }), 'has the fields a, but none that a JSON'],
  [
    'a promise of a ledger',
    () => createRuntime({ ledger: Promise.resolve() as never }),
    'a promise (await it',
  ],
  ['one agent for a list', () => runtime({ agents: agent }), 'agents is an object; expected a list'],
  [
    'a price of another shape',
    () => runtime({ prices: { m: { input: 3 } } }),
    'Did you mean prices.m.inputUsd?',
  ],
  ['a price that is a text', () => runtime({ prices: { m: { inputUsd: '3', outputUsd: 1 } } }), 'is a text'],
  ['prices that take time', () => runtime({ prices: async () => ({}) }), 'a function that is not async'],
  ['what only has a definition', () => agentTool({ definition: {} } as never), 'an agent made with'],
  ['what only has handoffs', () => agentTool({ handoffs: [] } as never), 'an agent made with'],
  ['no agent at all', () => agentTool('x' as never), 'the agent is a text; expected an agent made with'],
  [
    'no name to hand back to',
    () => handBack('', { description: 'x' }),
    'handBack: the name of the agent that continues',
  ],
  ['no description', () => handBack('desk', undefined as never), 'handBack: what it was given is missing'],
  [
    'options that are not an object',
    run('s1' as never),
    'run: what it was given is a text; expected an object',
  ],
]

describe('what no option can be', () => {
  it.each([...misspelt, ...misshaped])('is refused: %s', (_name, given, message) => {
    expect(given).toThrow(ConfigurationError)
    expect(given).toThrow(message)
  })

  it('is named with all that can be given, where nothing is near', () => {
    expect(define({ colour: 'red' })).toThrow(
      /^defineAgent \(agent\): colour is not an option\. Options are name, description, instructions, /,
    )
  })

  it('shows no value that may be a key', () => {
    expect(define({ instructions: ['sk-secret'] })).not.toThrow('sk-secret')
    expect(define({ model: 'sk-secret' })).not.toThrow('sk-secret')
  })

  it('is nothing that is undefined', async () => {
    const optional: { readonly [K in keyof AgentOptions]?: undefined } = {
      ...{ tools: undefined, limits: undefined, output: undefined, prepareTurn: undefined },
    }
    const quiet = defineAgent({ ...sound, ...(optional as object), limits: { maxTurns: undefined } })
    // A default is not taken away by saying nothing.
    expect(quiet.limits.maxTurns).toBe(20)
    const clock = manualClock()
    const handle = createRuntime({ ledger: memoryLedger(), host: { clock } }).run(quiet, 'Go.', {
      sessionId: undefined,
      limits: undefined,
    })
    expect((await waitUntilSettled(clock, handle.result)).text).toBe('Done.')
  })
})

describe('code of an agent that is asked for an answer at once', () => {
  it('is refused where stopWhen is async', () => {
    expect(define({ stopWhen: (async () => false) as never })).toThrow(
      'defineAgent (agent): stopWhen is an async function; expected a function that is not async',
    )
  })

  it('stops the run where stopWhen answers a promise: no turn follows in vain', async () => {
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
    const tools = [testTool({ name: 'look' })]
    const set = stage({ steps, tools, stopWhen: (() => Promise.resolve(true)) as never })
    await expect(set.play()).rejects.toThrow('stopWhen of the agent agent returned a promise')
    expect(set.model.requests).toHaveLength(1)
  })

  it('stops the run where what prepareTurn changes is misspelt', async () => {
    const set = stage({ prepareTurn: (() => ({ message: [] })) as never })
    await expect(set.play()).rejects.toThrow('message is not an option. Did you mean messages?')
  })

  it('stops the run where a function sums up with a promise', async () => {
    const compaction = {
      maxContextTokens: 1,
      keepMessages: 0,
      summarize: (() => Promise.resolve('s')) as never,
    }
    const steps = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done.' }]
    const set = stage({ steps, compaction, tools: [testTool({ name: 'look' })] })
    await expect(set.play()).rejects.toThrow('compaction.summarize of the agent agent returned a promise')
  })
})

describe('commands', () => {
  it('are refused without the one who gives them, or without their call', async () => {
    const tools = [testTool({ name: 'pay', check: () => ({ kind: 'ask' }) })]
    const set = stage({ steps: [{ toolCalls: [{ name: 'pay', input: {} }] }], tools })
    const handle = set.start()
    await set.waitUntilSettled(handle.result)
    const why = async (acknowledgement: Promise<object>): Promise<string> => {
      const answer = await acknowledgement
      expect(answer).toMatchObject({ accepted: false, code: 'malformed' })
      return (answer as { message: string }).message
    }
    expect(await why(handle.approve('c', undefined as never))).toMatch(
      'approve: what it was given is missing',
    )
    expect(await why(handle.approve('c', { by: '' }))).toMatch('approve: by is an empty text')
    expect(await why(handle.approve('c', { by: 'm', inputs: {} } as never))).toMatch('Did you mean input?')
    expect(await why(handle.deny(undefined as never, { by: 'm', reason: '' }))).toMatch('the tool call id')
    expect(await why(handle.raiseLimit('maxTurn' as never, 3, { by: 'm' }))).toMatch(
      "Did you mean 'maxTurns'?",
    )
    const more = handle as unknown as Record<'steer' | 'queue', (...given: unknown[]) => Promise<object>>
    expect(await why(more.steer('x', 5))).toBe(
      'steer: what follows the input is 5; expected nothing: it takes no options. Nothing was sent.',
    )
    expect(await why(more.queue('x', { foo: 1 }))).toMatch('queue: what follows the input is an object')
    const { suspended } = set.runtime as unknown as { suspended: (given: unknown) => unknown }
    expect(() => suspended({ status: 'x' })).toThrow(
      'suspended: what it was given is an object; expected nothing',
    )
    // Nothing of it reached the ledger.
    expect(await set.ledger.inbox(handle.id)).toEqual([])
    await expect(set.runtime.drain('now' as never)).rejects.toThrow('drain: graceMs is a text')
  })
})

describe('a package of one’s own', () => {
  const { fields, maybe, numberFrom, oneOf, filledText } = option
  const check = fields<{ path: string; mode?: string | undefined; rows?: number | undefined }>({
    path: filledText,
    mode: maybe(oneOf(['read', 'write'])),
    rows: maybe(numberFrom(1, { whole: true })),
  })

  it('checks its options by the same table: one line an option', () => {
    expect(() => requireOptions('store', check, { path: 'p', mode: 'read', rows: 3 })).not.toThrow()
    expect(() => requireOptions('store', check, { path: 'p', row: 3 })).toThrow('Did you mean rows?')
    expect(() => requireOptions('store', check, { path: 'p', rows: 1.5 })).toThrow('store: rows is 1.5')
    expect(() => requireOptions('store', check, null)).toThrow('store: what it was given is null')
    expect(() => requireOptions('store', check, { path: 'p', constructor: 1 })).toThrow(
      'constructor is not an option',
    )
  })
})
