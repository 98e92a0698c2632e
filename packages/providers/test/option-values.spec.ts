import { ConfigurationError } from '@tallystick/core'
import { fromAiSdk } from '@tallystick/providers/ai-sdk'
import { anthropic } from '@tallystick/providers/anthropic'
import { ollama } from '@tallystick/providers/ollama'
import { openai, openaiChat } from '@tallystick/providers/openai'
import { describe, expect, it } from 'vitest'
import { resolveQuirks } from '../src/openai/options.ts'

// Every value that an option of an adapter may have, and the values just beside them.

type Options = Readonly<Record<string, unknown>>
interface Values {
  readonly taken: readonly unknown[]
  readonly refused: readonly unknown[]
}

const aiModel = {
  ...{ specificationVersion: 'v4', provider: 'p', modelId: 'm', doStream: () => undefined },
} as never
const makers: Readonly<Record<string, (options: Options) => { readonly pinnedOptions?: unknown }>> = {
  anthropic: (options) => anthropic('m', options),
  openai: (options) => openai('m', options),
  openaiChat: (options) => openaiChat('m', options),
  ollama: (options) => ollama('m', options),
  fromAiSdk: (options) => fromAiSdk(aiModel, options),
}

const whole: Values = { taken: [1, 4096], refused: [0, -1, 1.5, Infinity, '1', null] }
const wait: Values = { taken: [1, 2_147_483_647], refused: [0, 1.5, 2_147_483_648, '1', null] }
const flag: Values = { taken: [true, false], refused: ['true', 1, null] }
const text: Values = { taken: ['x', ''], refused: [1, null, {}] }
const filled: Values = { taken: ['x'], refused: ['', ' ', 1, null] }
const anyObject: Values = { taken: [{}, { a: 1 }], refused: ['x', [], null, 1] }
const anyObjects: Values = { taken: [[], [{ a: 1 }]], refused: [{}, ['x'], [null], 'x'] }
const texts: Values = { taken: [{}, { a: 'x' }, { a: undefined }], refused: [{ a: 1 }, ['x'], 'x', null] }
const anyFunction: Values = { taken: [() => undefined], refused: ['x', {}, null] }
const key: Values = { taken: ['k', () => 'k'], refused: ['', 1, null, {}] }
const oneOf = (...taken: readonly string[]): Values => ({ taken, refused: ['', 'other', 1, null] })

const servers = [
  ...['openai', 'azure', 'deepseek', 'groq', 'llamacpp', 'lmstudio'],
  ...['gemini', 'mistral', 'moonshot', 'ollama', 'openrouter', 'sglang', 'vllm', 'xai', 'zai'],
]

const common = {
  contentTimeoutMs: wait,
  totalTimeoutMs: wait,
  headers: texts,
  idleTimeoutMs: wait,
  maxOutputTokens: whole,
  onWarning: anyFunction,
  responseTimeoutMs: wait,
}
const wire = {
  ...common,
  baseURL: { ...filled, taken: ['http://x'] },
  extraBody: anyObject,
  fetch: anyFunction,
}
const bothOpenAI = {
  ...wire,
  apiKey: key,
  client: { taken: [{}], refused: ['x', null, 1] },
  provider: filled,
  strictTools: flag,
  customTools: {
    taken: [{}, { a: { field: 'x' } }, { a: { field: 'x', format: {} } }],
    refused: ['x', { a: {} }, { a: { field: '' } }, { a: { field: 'x', format: 'x' } }],
  },
  toolFields: { taken: [{}, { a: {} }], refused: ['x', { a: 'x' }] },
  promptCacheKey: text,
  serviceTier: filled,
  metadata: texts,
  verbosity: oneOf('low', 'medium', 'high'),
}

const options: Readonly<Record<string, Readonly<Record<string, Values>>>> = {
  anthropic: {
    ...wire,
    apiKey: key,
    client: { taken: [{}], refused: ['x', null, 1] },
    thinking: {
      taken: [
        ...['adaptive', 'between_tools', 'disabled'].map((type) => ({ type })),
        ...['summarized', 'omitted', undefined].map((display) => ({ type: 'adaptive', display })),
        ...[1, 2000].map((budgetTokens) => ({ type: 'enabled', budgetTokens })),
      ],
      refused: [
        ...[
          'x',
          {},
          { type: 'always' },
          { type: 'adaptive', display: 'none' },
          { type: 'adaptive', more: 1 },
        ],
        ...[0, 1.5, '1'].map((budgetTokens) => ({ type: 'enabled', budgetTokens })),
      ],
    },
    effort: oneOf('low', 'medium', 'high', 'xhigh', 'max'),
    promptCache: oneOf('5m', '1h', 'off'),
    citations: flag,
    strictTools: flag,
    eagerToolInputs: flag,
    toolFields: { taken: [{}, { a: {} }], refused: ['x', { a: 'x' }] },
    providerTools: anyObjects,
    mcpServers: {
      taken: [[], [{ name: 'a', url: 'x', authorizationToken: '', toolset: {} }]],
      refused: [
        ...['x', ['x'], [{ name: 'a' }], [{ url: 'x' }], [{ name: 'a', url: '' }]],
        ...[{ authorizationToken: 1 }, { toolset: 'x' }].map((more) => [{ name: 'a', url: 'x', ...more }]),
      ],
    },
    contextEdits: anyObjects,
    betas: { taken: [[], ['x']], refused: ['x', [1]] },
  },
  openai: {
    ...bothOpenAI,
    reasoning: {
      taken: [{}, { effort: 'x' }, ...['auto', 'concise', 'detailed'].map((summary) => ({ summary }))],
      refused: ['x', { effort: 1 }, { summary: 'long' }],
    },
    include: { taken: [[], ['x']], refused: ['x', [''], [1]] },
    providerTools: anyObjects,
    approvalTool: filled,
    background: flag,
    nativeTools: {
      taken: [{}, { shell: 'run' }, { apply_patch: 'patch', shell: undefined }],
      refused: ['x', null, { shell: '' }, { shell: 1 }, { bash: 'run' }],
    },
    chain: flag,
    conversation: filled,
  },
  openaiChat: {
    ...bothOpenAI,
    server: oneOf(...servers),
    reasoningEffort: text,
  },
  ollama: {
    ...wire,
    baseURL: {
      taken: [':11434', 'localhost', 'host:11434', 'http://x', 'https://x:1/v1', '127.0.0.1'],
      refused: [':x', 'http://', 'a b', 'host:x', 'http://a b', 'me:secret@host', '', 1],
    },
    apiKey: text,
    contextTokens: whole,
    thinking: { taken: [true, false, 'high'], refused: [1, null, {}] },
    keepAlive: { taken: ['10m', 300], refused: [true, null, {}] },
    parameters: anyObject,
  },
  fromAiSdk: {
    ...common,
    provider: filled,
    settings: anyObject,
    providerOptions: anyObject,
    endOfStreamIsEnd: flag,
    answerInInstructions: flag,
  },
}

const quirks: Readonly<Record<string, Values>> = {
  systemRole: oneOf('system', 'developer'),
  maxTokensField: oneOf('max_completion_tokens', 'max_tokens'),
  streamUsage: flag,
  parallelToolCalls: flag,
  toolChoice: oneOf('all', 'none'),
  structuredOutput: oneOf('json_schema', 'json_object', 'none'),
  strict: flag,
  maxStop: { taken: [0, 4, Infinity], refused: [-1, '4', null] },
  seedField: oneOf('seed', 'random_seed', 'none'),
  callIds: oneOf('any', 'nine_alphanumeric'),
  toolNames: oneOf('identifier', 'any'),
  alternatingRoles: flag,
  finishReasonOptional: flag,
  replayReasoning: oneOf('open_turn', 'turns_with_calls', 'always', 'never'),
  reasoningPlaceholder: { taken: ['', ' ', false], refused: [true, null, 1] },
  readsArguments: flag,
  signsCalls: flag,
}

/** What becomes of a model with one option: nothing, or the class of the error. */
function fateOf(make: () => unknown): string {
  try {
    make()
    return 'taken'
  } catch (error) {
    return error instanceof ConfigurationError ? 'refused' : String(error)
  }
}

const cases = [
  ...Object.entries(options).flatMap(([maker, table]) =>
    Object.entries(table).map(([name, values]) => ({
      ...{ name: `${maker}: ${name}`, values },
      make: (value: unknown) => makers[maker]!({ [name]: value }),
    })),
  ),
  ...Object.entries(quirks).map(([name, values]) => ({
    ...{ name: `openaiChat: quirks.${name}`, values },
    make: (value: unknown) => makers['openaiChat']!({ quirks: { [name]: value } }),
  })),
]

describe('an option', () => {
  it.each(cases)('$name takes its values, and no other', ({ values, make }) => {
    const fates = (list: readonly unknown[]) => list.map((value) => [value, fateOf(() => make(value))])
    expect(fates([...values.taken, undefined])).toEqual(
      [...values.taken, undefined].map((value) => [value, 'taken']),
    )
    expect(fates(values.refused)).toEqual(values.refused.map((value) => [value, 'refused']))
  })
})

describe('a name that others have for an option', () => {
  // Names that other libraries and the vendors have for the same option: the error names ours.

  const aiModel = {
    ...{ specificationVersion: 'v4', provider: 'p', modelId: 'm', doStream: () => undefined },
  } as never

  const common = {
    baseURL: ['baseUrl', 'url', 'host', 'endpoint'],
    maxOutputTokens: ['maxTokens', 'max_tokens'],
    responseTimeoutMs: ['timeout'],
  }
  const keyed = { ...common, apiKey: ['key'] }

  /** For each adapter, what is given there under another name, and the other names of each option. */
  const places: readonly (readonly [
    place: string,
    give: (options: never) => unknown,
    names: Readonly<Record<string, readonly string[]>>,
  ])[] = [
    ['anthropic', (options) => anthropic('m', options), keyed],
    ['openai', (options) => openai('m', options), { ...keyed, 'reasoning.effort': ['reasoningEffort'] }],
    [
      'openaiChat',
      (options) => openaiChat('m', options),
      { ...keyed, reasoningEffort: ['reasoning', 'effort'] },
    ],
    [
      'ollama',
      (options) => ollama('m', options),
      {
        ...common,
        contextTokens: ['num_ctx'],
        keepAlive: ['keep_alive'],
        parameters: ['options'],
        'parameters.seed': ['seed'],
        'parameters.stop': ['stop'],
        'parameters.temperature': ['temperature'],
        thinking: ['think'],
      },
    ],
    [
      'fromAiSdk',
      (options) => fromAiSdk(aiModel, options),
      {
        responseTimeoutMs: ['timeout'],
        'settings.seed': ['seed'],
        'settings.temperature': ['temperature'],
        'settings.topP': ['topP'],
      },
    ],
  ]

  it.each(places)('of %s is refused with the name that it has here', (maker, give, names) => {
    for (const [right, others] of Object.entries(names)) {
      for (const name of others) {
        expect(() => give({ [name]: 1 } as never)).toThrow(
          `${maker}: ${name} is not an option. Did you mean ${right}? `,
        )
      }
    }
  })
})

// A quirk that is `undefined` says what leaving it out says.

it('a quirk that is undefined leaves what is known of the server', () => {
  const quirks = { streamUsage: undefined, callIds: undefined, maxStop: 8 }
  expect(resolveQuirks('mistral', quirks)).toEqual({ ...resolveQuirks('mistral', undefined), maxStop: 8 })
})
