import { describe, expect, it } from 'vitest'
import { anthropic } from '@tallystick/providers/anthropic'
import { ollama } from '@tallystick/providers/ollama'
import { openai, openaiChat } from '@tallystick/providers/openai'

describe('what the ledger keeps of a model’s options', () => {
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
