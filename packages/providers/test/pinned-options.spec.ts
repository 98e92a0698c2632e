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

describe('what the ledger keeps of what options add to a request', () => {
  const named = (model: Model): readonly string[] =>
    (model.additions ?? []).map(
      ({ option, field, replaces }) => `${option}: ${replaces ? 'replaces ' : ''}${field}`,
    )

  it.each<[string, Model, readonly string[]]>([
    [
      'anthropic()',
      anthropic('claude-opus-4-8', {
        extraBody: { system: 'Lie.', user_profile: 'x' },
        toolFields: { pay: { defer_loading: true, description: 'Free.' } },
        providerTools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 1 }],
        mcpServers: [{ name: 'crm', url: 'https://crm.example' }],
        headers: { 'X-Mode': 'loud' },
      }),
      [
        'mcpServers: mcp_servers',
        'extraBody: replaces system',
        'extraBody: user_profile',
        'toolFields: tools.pay.defer_loading',
        'toolFields: replaces tools.pay.description',
        'providerTools: tools.web_search',
        'headers: x-mode',
      ],
    ],
    [
      'openai()',
      openai('m', {
        extraBody: { instructions: 'Lie.', top_logprobs: 2 },
        toolFields: { pay: { strict: true } },
        providerTools: [{ type: 'web_search' }],
        metadata: { a: 'b' },
        promptCacheKey: 'k',
      }),
      [
        'promptCacheKey: prompt_cache_key',
        'metadata: metadata',
        'extraBody: replaces instructions',
        'extraBody: top_logprobs',
        'toolFields: replaces tools.pay.strict',
        'providerTools: tools.web_search',
      ],
    ],
    [
      'openaiChat()',
      openaiChat('m', { extraBody: { temperature: 2, logit_bias: { 5: 1 } } }),
      ['extraBody: replaces temperature', 'extraBody: logit_bias'],
    ],
    [
      'ollama()',
      ollama('m', { extraBody: { think: false, raw: true }, keepAlive: 1, headers: { a: 'b' } }),
      ['keepAlive: keep_alive', 'extraBody: replaces think', 'extraBody: raw', 'headers: a'],
    ],
  ])('names every field of it: %s', (_, model, fields) => {
    expect(named(model)).toEqual(fields)
  })

  it('tells one value from another by its digest, and shows neither', () => {
    const digestOfSeed = (seed: number): unknown =>
      openaiChat('m', { extraBody: { logit_bias: { seed } } }).additions?.[0]?.digest
    expect(digestOfSeed(1)).toMatch(/^[0-9a-f]{64}$/)
    expect(digestOfSeed(1)).toBe(digestOfSeed(1))
    expect(digestOfSeed(1)).not.toBe(digestOfSeed(2))
  })

  it('says of a credential only that there is one, so that a new one is no other request', () => {
    const withKey = (key: string): Model =>
      anthropic('claude-opus-4-8', {
        headers: { authorization: key },
        mcpServers: [{ name: 'crm', url: 'https://crm.example', authorizationToken: key }],
        extraBody: { vault: { password: key, path: 'a' }, max_tokens: 9 },
      })
    const [servers, vault, maxTokens, header] = withKey('first').additions ?? []
    expect(withKey('second').additions).toEqual(withKey('first').additions)
    expect(header).toEqual({ option: 'headers', field: 'authorization' })
    for (const { digest } of [servers!, vault!, maxTokens!]) expect(digest).toMatch(/^[0-9a-f]{64}$/)
  })

  it('holds the values where an option asks for it', () => {
    const extraBody = { system: 'Lie.' }
    const model = anthropic('claude-opus-4-8', { extraBody, headers: { a: 'x' }, recordAdditions: true })
    expect(model.pinnedOptions).toEqual({ extraBody })
    expect(named(model)).toEqual(['extraBody: replaces system', 'headers: a'])
  })

  it('refuses what no request can carry', () => {
    expect(() => openai('m', { extraBody: { a: 1n as never } })).toThrow(
      /option extraBody that JSON cannot carry/,
    )
  })
})
