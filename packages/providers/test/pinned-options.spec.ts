import type { Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicOptions } from '@tallystick/providers/anthropic'
import { ollama, type OllamaOptions } from '@tallystick/providers/ollama'
import {
  openai,
  openaiChat,
  type OpenAIChatOptions,
  type OpenAICommonOptions,
  type OpenAIOptions,
} from '@tallystick/providers/openai'

const anthropicOptions: AnthropicOptions = {
  ...{
    maxOutputTokens: 5,
    thinking: { type: 'adaptive' },
    effort: 'low',
    promptCache: 'off',
    citations: false,
  },
  ...{ strictTools: true, eagerToolInputs: false, contextEdits: [{ type: 'x' }], betas: ['b'] },
}
const bothOpenAI: OpenAICommonOptions & Pick<OpenAIOptions, 'verbosity'> = {
  ...{ verbosity: 'low', strictTools: true, customTools: { a: { field: 'x' } } },
  ...{ maxOutputTokens: 5, serviceTier: 'flex' },
}
const openaiOptions: OpenAIOptions = {
  ...bothOpenAI,
  ...{ chain: true, reasoning: { effort: 'low' }, include: ['x'], approvalTool: 'ask' },
}
const chatOptions: OpenAIChatOptions = {
  ...bothOpenAI,
  ...{ server: 'groq', quirks: { strict: true }, reasoningEffort: 'high' },
}
const ollamaOptions: OllamaOptions = {
  contextTokens: 5,
  maxOutputTokens: 6,
  thinking: 'high',
  parameters: { top_p: 1 },
}
/** What says nothing of how a model works. */
const unkept = {
  ...{ headers: { a: 'x' }, extraBody: { a: 1 }, onWarning: () => undefined },
  ...{ responseTimeoutMs: 5, idleTimeoutMs: 5, apiKey: 'k', fetch: globalThis.fetch },
}

describe('what the ledger keeps of a model’s options', () => {
  it.each<[string, Model, object]>([
    [
      'anthropic()',
      anthropic('m', {
        ...unkept,
        ...anthropicOptions,
        toolFields: { a: {} },
        providerTools: [],
        mcpServers: [],
      }),
      anthropicOptions,
    ],
    ['openai()', openai('m', { ...unkept, ...openaiOptions, metadata: {} }), openaiOptions],
    ['openai() in a conversation', openai('m', { conversation: 'c' }), { conversation: 'c' }],
    ['openaiChat()', openaiChat('m', { ...unkept, ...chatOptions, metadata: {} }), chatOptions],
    ['ollama()', ollama('m', { ...unkept, ...ollamaOptions, keepAlive: 1 }), ollamaOptions],
  ])('is all that decides how a model works, and nothing else: %s', (_, model, kept) => {
    expect(model.pinnedOptions).toEqual(kept)
  })

  it('is a copy', () => {
    const parameters = { top_p: 0.5 }
    const { pinnedOptions } = ollama('m', { parameters })
    parameters.top_p = 1
    expect(pinnedOptions).toEqual({ parameters: { top_p: 0.5 } })
  })

  it('names the conversation and how the model is to work', () => {
    expect(openai('gpt-5.2', { conversation: 'conv_1', strictTools: true }).pinnedOptions).toEqual({
      ...{ conversation: 'conv_1', strictTools: true },
    })
    expect(openai('gpt-5.2', { chain: true, reasoning: { effort: 'low' } }).pinnedOptions).toEqual({
      ...{ chain: true, reasoning: { effort: 'low' } },
    })
    expect(openaiChat('gpt-5.2', { reasoningEffort: 'high' }).pinnedOptions).toEqual({
      reasoningEffort: 'high',
    })
    expect(anthropic('claude-opus-4-8', { effort: 'low' }).pinnedOptions).toEqual({ effort: 'low' })
    expect(ollama('qwen3', { contextTokens: 8_192 }).pinnedOptions).toEqual({ contextTokens: 8_192 })
  })

  it('holds no key, header, address or body of one’s own, and is absent where nothing was said', () => {
    const secret = {
      apiKey: 'sk-secret',
      headers: { authorization: 'secret' },
      extraBody: { token: 'secret' },
    }
    const models = [
      openai('gpt-5.2', { ...secret, baseURL: 'https://secret.example/v1' }),
      openaiChat('gpt-5.2', { ...secret, baseURL: 'https://secret.example/v1' }),
      anthropic('claude-opus-4-8', { ...secret, baseURL: 'https://secret.example' }),
      ollama('qwen3', { headers: secret.headers, extraBody: secret.extraBody }),
    ]
    expect(models.map(({ pinnedOptions }) => pinnedOptions)).toEqual(models.map(() => undefined))
  })
})
