// What is given in plain JavaScript, where no compiler looks.
import { describe, expect, it } from 'vitest'
import { ConfigurationError, ProviderError } from '@tallystick/core'
import { fromAiSdk } from '@tallystick/providers/ai-sdk'
import { anthropic } from '@tallystick/providers/anthropic'
import { ollama } from '@tallystick/providers/ollama'
import { openai, openaiChat } from '@tallystick/providers/openai'
import { genaiPrices } from '@tallystick/providers/prices'
import { playedFetch, playedModel, recordingFetch } from '@tallystick/providers/recording'
import { declarePackage } from '../src/shared/options.ts'

const given = (value: unknown): never => value as never
const aiModel = given({
  ...{ specificationVersion: 'v4', provider: 'p', modelId: 'm', doStream: () => undefined },
})

const refused: readonly (readonly [string, () => unknown, string])[] = [
  ['no model id', () => anthropic(given(undefined)), 'anthropic: the model id is missing'],
  ['an empty one', () => openai(' '), 'openai: the model id is a text; expected a text that is not empty'],
  ['options for a model id', () => ollama(given({ model: 'qwen3' })), 'ollama: the model id is an object'],
  ['a model of another kind', () => fromAiSdk(given('gpt-5.4')), 'not a language model of the AI SDK'],
  ['a key by half its name', () => anthropic('m', given({ key: 'k' })), 'Did you mean apiKey?'],
  ['an address', () => anthropic('m', given({ baseUrl: 'http://x' })), 'Did you mean baseURL?'],
  ['a slip', () => anthropic('m', given({ maxOutputToken: 5 })), 'Did you mean maxOutputTokens?'],
  ['tokens', () => openaiChat('m', given({ maxTokens: 5 })), 'Did you mean maxOutputTokens?'],
  ['an effort', () => openai('m', given({ reasoning: { efort: 'low' } })), 'Did you mean reasoning.effort?'],
  ['a choice', () => anthropic('m', given({ effort: 'maximum' })), "use one of 'low', 'medium', 'high'"],
  ['a way', () => openaiChat('m', given({ quirks: { systemrole: 'x' } })), 'Did you mean quirks.systemRole?'],
  ['a window', () => ollama('m', given({ num_ctx: 5 })), 'Did you mean contextTokens?'],
  [
    'a whole number',
    () => ollama('m', { contextTokens: 1.5 }),
    'contextTokens is 1.5; expected a whole number',
  ],
  ['a wait without end', () => openai('m', { idleTimeoutMs: Infinity }), 'idleTimeoutMs is Infinity'],
  ['a header', () => openai('m', given({ headers: { a: 1 } })), 'headers.a is 1; expected a text'],
  ['a setting', () => fromAiSdk(aiModel, given({ seed: 1 })), 'Did you mean settings.seed?'],
  ['a wait', () => fromAiSdk(aiModel, given({ timeout: 5 })), 'Did you mean responseTimeoutMs?'],
  [
    'a temperature',
    () => fromAiSdk(aiModel, given({ temperature: 1 })),
    'Did you mean settings.temperature?',
  ],
  ['a share', () => fromAiSdk(aiModel, given({ topP: 0.5 })), 'Did you mean settings.topP?'],
  ['names of providers', () => genaiPrices(given({ provider: {} })), 'Did you mean providers?'],
  ['no file', () => recordingFetch(given(undefined)), 'recordingFetch: the file is missing'],
  ['a match', () => playedFetch('f', given({ match: 'orders' })), "Did you mean 'order'?"],
  ['a match of a model', () => playedModel('f', given({ matches: 'order' })), 'Did you mean match?'],
]

describe('what no option of an adapter can be', () => {
  it.each(refused)('is refused: %s', (_name, make, message) => {
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(message)
  })

  it('never shows a key', () => {
    expect(() => anthropic('m', given({ apiKey: ['sk-secret'] }))).toThrow('apiKey is a list; expected a key')
    expect(() => anthropic('m', given({ thinking: 'sk-secret' }))).not.toThrow('sk-secret')
  })

  it('is nothing that is undefined', () => {
    const unsaid = { apiKey: undefined, maxOutputTokens: undefined, onWarning: undefined, headers: undefined }
    expect([anthropic('m', unsaid), openai('m', unsaid), ollama('m', unsaid)]).toHaveLength(3)
  })
})

it('a package that does not load fails the call, which no retry would mend', async () => {
  const lost = declarePackage('lost', () => Promise.reject(new Error('no')))
  const error: unknown = await lost.load('maker').catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ProviderError)
  const message = 'maker() needs the package lost, which could not be loaded. Add it: npm install lost.'
  expect(error).toMatchObject({ class: 'invalid_request', retryable: false, message })
  expect(() => lost.require('maker')).toThrow('maker() needs the package lost, which is not installed.')
})
