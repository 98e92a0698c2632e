// Names that other libraries and the vendors have for the same option: the error names ours.
import { fromAiSdk } from '@tallystick/providers/ai-sdk'
import { anthropic } from '@tallystick/providers/anthropic'
import { ollama } from '@tallystick/providers/ollama'
import { openai, openaiChat } from '@tallystick/providers/openai'
import { describe, expect, it } from 'vitest'

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

describe('a name that others have for an option', () => {
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
