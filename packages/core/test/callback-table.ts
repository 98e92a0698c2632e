// Every function that an application gives to an agent or a runtime, and how each may be wrong.
import {
  type Agent,
  type AgentOptions,
  agentTool,
  defineAgent,
  handoff,
  outputMask,
  type OutputSchema,
  outputTransform,
  type RuntimeOptions,
} from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'

/** How a function may be wrong. */
export const wrongs = {
  throws: () => {
    throw new Error('boom')
  },
  'throws nothing': () => {
    // oxlint-disable-next-line typescript/only-throw-error -- what else a caller may throw
    throw undefined
  },
  rejects: () => Promise.reject(new Error('late boom')),
  'answers a promise': () => Promise.resolve('x'),
  'answers nothing': () => undefined,
  'answers 7': () => 7,
} as const
export type Wrong = keyof typeof wrongs

// oxlint-disable-next-line typescript/no-explicit-any -- it is given wherever a function of any form is
export type Code = (...given: any[]) => any

/** A function that an application gives. */
export interface Callback {
  /** Where it is given. */
  readonly give: (code: Code) => { readonly agent: Agent; readonly runtime?: Partial<RuntimeOptions> }
  /** What it answers where it is right. */
  readonly right: Code
  /** What says which function is wrong: the error, the result of the tool, the detail of the ending, or a report. */
  readonly named: RegExp
  /** What is not wrong of it. */
  readonly allows?: readonly Wrong[]
}

const model = (): ReturnType<typeof scriptedModel> =>
  scriptedModel([
    { text: 'I look. ', toolCalls: [{ name: 'look', input: {} }] },
    ...Array.from({ length: 4 }, () => ({ text: '{"card":"4242"}' })),
  ])
const look = testTool({ name: 'look', run: () => 'seen' })

function agentWith(options: Partial<AgentOptions<unknown>>): Agent {
  return defineAgent({
    name: 'desk',
    instructions: 'Answer.',
    model: model(),
    tools: [look],
    ...options,
  } as AgentOptions)
}

function handingOver(
  options: { readonly filter?: Code; readonly foldHistory?: object },
  instructions: string | Code = 'Go on.',
): Agent {
  const next = defineAgent({
    name: 'next',
    description: 'Knows.',
    instructions,
    model: scriptedModel([{ text: 'Here.' }]),
  })
  return agentWith({
    model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_next', input: {} }] }]),
    tools: [],
    handoffs: [handoff(next, options as object)],
  })
}

function asking(options: object): Agent {
  const helper = defineAgent({
    name: 'helper',
    description: 'Helps.',
    instructions: 'Help.',
    model: scriptedModel([{ text: 'Done.' }]),
  })
  return agentWith({
    model: scriptedModel([{ toolCalls: [{ name: 'helper', input: { task: 'Go.' } }] }, { text: 'Well.' }]),
    tools: [agentTool(helper, options)],
  })
}

const transforms = (...all: readonly object[]): Partial<AgentOptions<unknown>> =>
  ({ outputStream: { transforms: all } }) as Partial<AgentOptions<unknown>>
const schemaOf = (validate: Code, input: Code): OutputSchema =>
  ({ '~standard': { version: 1, vendor: 'own', validate, jsonSchema: { input } } }) as object as OutputSchema
const guardrailOn = (on: string): Callback => ({
  give: (check) => ({ agent: agentWith({ guardrails: [{ name: 'rail', on, check } as never] }) }),
  right: () => 'pass',
  named: /^rail: /m,
})
const reported = (name: string): Callback => ({
  give: (code) => ({ agent: agentWith({}), runtime: { hooks: { awaited: true, [name]: code } } }),
  right: () => {},
  named: new RegExp(`^The hook ${name} of run .* failed`, 'm'),
  allows: ['answers a promise', 'answers nothing', 'answers 7'],
})

export const callbacks: { readonly [option: string]: Callback } = {
  instructions: {
    give: (instructions) => ({ agent: agentWith({ instructions }) }),
    right: () => 'Answer.',
    named: /instructions of the agent desk/,
  },
  'instructions of a turn': {
    give: (code) => ({
      agent: agentWith({ instructions: (_context, state) => (state ? code() : 'Answer.') }),
    }),
    right: () => 'Answer.',
    named: /instructions of the agent desk for turn 1/,
  },
  'instructions of the next agent': {
    give: (code) => ({ agent: handingOver({}, code) }),
    right: () => 'Go on.',
    named: /instructions of the agent next/,
  },
  tools: {
    give: (tools) => ({ agent: agentWith({ tools }) }),
    right: () => [look],
    named: /tools of the agent desk/,
  },
  'tools of a later turn': {
    give: (code) => ({ agent: agentWith({ tools: (_context, { turn }) => (turn === 0 ? [look] : code()) }) }),
    right: () => [look],
    named: /tools of the agent desk/,
  },
  'tools of a source': {
    give: (code) => {
      let reads = 0
      const toolSource = {
        get tools() {
          return reads++ === 0 ? [look] : code()
        },
      }
      return { agent: agentWith({ tools: [], toolSource }) }
    },
    right: () => [look],
    named: /tools of the toolSource of the agent desk/,
  },
  'offered of a source': {
    give: (offered) => ({ agent: agentWith({ tools: [], toolSource: { tools: [look], offered } }) }),
    right: () => ['look'],
    named: /offered of the toolSource of the agent desk/,
  },
  approval: {
    give: (approval) => ({ agent: agentWith({ approval }) }),
    right: () => 'run',
    named: /The approval of the agent desk failed/,
  },
  'approval of the runtime, over that of the agent': {
    give: (approval) => ({ agent: agentWith({ approval: () => 'run' }), runtime: { approval } }),
    right: () => 'run',
    named: /The approval of the agent desk failed/,
  },
  'guardrail on input': guardrailOn('input'),
  'guardrail on output': guardrailOn('output'),
  'guardrail on tool_input': guardrailOn('tool_input'),
  'guardrail on tool_output': guardrailOn('tool_output'),
  handoffs: {
    give: (handoffs) => ({ agent: agentWith({ handoffs }) }),
    right: () => [],
    named: /handoffs of the agent desk/,
  },
  'filter of a handoff': {
    give: (filter) => ({ agent: handingOver({ filter }) }),
    right: (messages) => messages,
    named: /filter of the handoff to next/,
  },
  handoffFilter: {
    give: (handoffFilter) => ({ agent: handingOver({}), runtime: { handoffFilter } }),
    right: (messages) => messages,
    named: /filter of the handoff to next/,
  },
  'render of foldHistory': {
    give: (render) => ({ agent: handingOver({ foldHistory: { render } }) }),
    right: () => 'What was said.',
    named: /render of foldHistory/,
  },
  'validate of output': {
    give: (validate) => ({
      agent: agentWith({ output: schemaOf(validate, () => ({ type: 'object' })) }),
    }),
    right: (value) => ({ value }),
    named: /validate of the output of agent desk/,
  },
  'jsonSchema of output': {
    give: (input) => ({ agent: agentWith({ output: schemaOf((value) => ({ value }), input) }) }),
    right: () => ({ type: 'object' }),
    named: /The schema of the output of agent desk/,
  },
  stopWhen: {
    give: (stopWhen) => ({ agent: agentWith({ stopWhen }) }),
    right: () => false,
    named: /stopWhen of the agent desk/,
  },
  prepareTurn: {
    give: (prepareTurn) => ({ agent: agentWith({ prepareTurn }) }),
    right: () => undefined,
    named: /prepareTurn of the agent desk/,
    allows: ['answers nothing'],
  },
  'prepareTurn of the runtime': {
    give: (prepareTurn) => ({ agent: agentWith({}), runtime: { prepareTurn } }),
    right: () => undefined,
    named: /prepareTurn of the agent desk/,
    allows: ['answers nothing'],
  },
  'compaction.summarize': {
    give: (summarize) => ({
      agent: agentWith({ compaction: { maxContextTokens: 1, keepMessages: 0, summarize } }),
    }),
    right: () => 'It looked.',
    named: /compaction\.summarize of the agent desk/,
  },
  'begin of a transform': {
    give: (begin) => ({ agent: agentWith(transforms({ name: 'own', begin })) }),
    right: () => ({ write: (text: string) => text, end: () => '' }),
    named: /begin of the transform own/,
  },
  'write of a transform': {
    give: (write) => ({
      agent: agentWith(transforms({ name: 'own', begin: () => ({ write, end: () => '' }) })),
    }),
    right: (text) => text,
    named: /write of the transform own/,
  },
  'end of a transform': {
    give: (end) => ({
      agent: agentWith(transforms({ name: 'own', begin: () => ({ write: (text: string) => text, end }) })),
    }),
    right: () => '',
    named: /end of the transform own/,
  },
  'show of outputTransform': {
    give: (show) => ({ agent: agentWith(transforms(outputTransform({ name: 'own', show }))) }),
    right: (text) => text,
    named: /show of outputTransform \(own\)/,
  },
  'replacement of outputMask': {
    give: (replacement) => ({
      agent: agentWith(transforms(outputMask({ name: 'own', pattern: /4242/g, window: 4, replacement }))),
    }),
    right: () => '****',
    named: /replacement of outputMask \(own\)/,
  },
  prices: {
    give: (prices) => ({ agent: agentWith({}), runtime: { prices } }),
    right: () => undefined,
    named: /prices/,
    allows: ['answers nothing'],
  },
  'task of agentTool': {
    give: (task) => ({
      agent: asking({ input: { type: 'object', properties: { task: { type: 'string' } } }, task }),
    }),
    right: ({ task }) => task,
    named: /task of agentTool \(helper\)/,
  },
  'output of agentTool': {
    give: (output) => ({ agent: asking({ output }) }),
    right: ({ text }) => text,
    named: /output of agentTool \(helper\)/,
  },
  'check of a tool': {
    give: (check) => ({ agent: agentWith({ tools: [{ ...look, check }] }) }),
    right: () => ({ kind: 'run' }),
    named: /The check of this call failed/,
  },
  'run of a tool': {
    give: (run) => ({ agent: agentWith({ tools: [{ ...look, run }] }) }),
    right: (call) => look.run(call),
    named: /The tool (failed|broke its contract: its run)/,
  },
  'stream of a model': {
    give: (stream) => ({
      agent: agentWith({ model: { ...model(), provider: 'own', api: 'own', modelId: 'own', stream } }),
    }),
    right: (...call: readonly [never, never]) => scriptedModel([{ text: 'Well.' }]).stream(...call),
    named: /The adapter for own own broke its contract/,
  },
  'hook runStarted': reported('runStarted'),
  'hook toolEnded': reported('toolEnded'),
  'host.random': {
    give: (random) => ({ agent: agentWith({}), runtime: { host: { random } } }),
    right: () => 0.5,
    named: /host\.random of createRuntime/,
  },
  'host.clock.now': {
    give: (now) => ({
      agent: agentWith({}),
      runtime: { host: { clock: { now, schedule: () => () => {} } } },
    }),
    right: () => 1_760_000_000_000,
    named: /now of host\.clock of createRuntime/,
    allows: ['answers 7'],
  },
}
