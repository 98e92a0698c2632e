import { Buffer } from 'node:buffer'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import type { Model } from '@tallystick/core'
import OpenAI from 'openai'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { collect } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'

/** Keys of services that mark theirs by nothing, as Azure and Mistral do, and of some that do. */
const keys = {
  'in hexadecimal': '0f1e2d3c4b5a69788796a5b4c3d2e1f0',
  'of letters and digits': 'Zx81Kq0vLmN27tYpRw93BcDfGhJkQsVu',
  'of Groq': ['gs', 'k_', 'a1B2c3D4'.repeat(6)].join(''),
  "of a server of one's own": 'swordfish-is-my-key',
}

/** How an error repeats a key. */
const echoes: readonly (readonly [string, (key: string) => string])[] = [
  ['as it is', (key) => `Incorrect API key provided: ${key}. Find yours in the console.`],
  ['within a dump of the request', (key) => JSON.stringify({ headers: { authorization: `Bearer ${key}` } })],
  ['in capitals', (key) => `key ${key.toUpperCase()} is unknown`],
  ['in Base64', (key) => `token ${Buffer.from(`user:${key}`).toString('base64')} is unknown`],
  ['in hexadecimal', (key) => `key ${Buffer.from(key).toString('hex')} is unknown`],
  [
    'escaped for a URL',
    (key) => `GET /v1?key=${key.replaceAll(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`)}`,
  ],
  ['cut off where the text is', (key) => `${'x'.repeat(285)} ${key}`],
]

type Maker = (options: { readonly baseURL: string; readonly key: string }) => Model

const makers: Readonly<Record<string, Maker>> = {
  'anthropic()': ({ baseURL, key }) => anthropic('claude-test', { baseURL, apiKey: key }),
  'anthropic() with a client of its own': ({ baseURL, key }) =>
    anthropic('claude-test', { client: new Anthropic({ baseURL, apiKey: key, logLevel: 'off' }) }),
  'anthropic() with a key in a header': ({ baseURL, key }) =>
    anthropic('claude-test', { baseURL, apiKey: 'short', headers: { 'x-gateway': key } }),
  'anthropic() with the token of an MCP server': ({ baseURL, key }) =>
    anthropic('claude-test', {
      ...{ baseURL, apiKey: 'short' },
      mcpServers: [{ name: 'mail', url: 'https://mail.example.com', authorizationToken: key }],
    }),
  'openai()': ({ baseURL, key }) => openai('gpt-test', { baseURL, apiKey: key }),
  'openai() with a key that is got': ({ baseURL, key }) =>
    openai('gpt-test', { baseURL, apiKey: () => Promise.resolve(key) }),
  'openaiChat()': ({ baseURL, key }) => openaiChat('gpt-test', { baseURL, apiKey: key }),
  'openaiChat() with a client of its own': ({ baseURL, key }) =>
    openaiChat('gpt-test', { client: new OpenAI({ baseURL, apiKey: key, logLevel: 'off' }) }),
  'ollama()': ({ baseURL, key }) => ollama('qwen', { baseURL, apiKey: key }),
  'fromAiSdk()': ({ baseURL, key }) => fromAiSdk(createOpenAI({ baseURL, apiKey: key }).chat('gpt-test')),
}

/** The record of a call that was refused, with words and a request id that the server chose. */
async function failureOf(make: Maker, key: string, words: string): Promise<string> {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  for (const name of ['x-request-id', 'request-id']) headers[name] = `req-${key}`
  const body = JSON.stringify({ type: 'error', error: { type: 'authentication_error', message: words } })
  const server = await serve({ status: 401, headers, pieces: [body] })
  const { failure } = await collect(make({ baseURL: server.url, key }))
  return JSON.stringify(failure?.toFailure())
}

afterEach(() => vi.unstubAllEnvs())

describe.each(Object.entries(makers))('%s', (_maker, make) => {
  it.each(Object.entries(keys))(
    'keeps a key %s out of the failure, however the server repeats it',
    async (_kind, key) => {
      for (const [how, echo] of echoes) {
        const reported = (await failureOf(make, key, echo(key))).toLowerCase()
        const forms = [
          key,
          Buffer.from(key).toString('hex'),
          Buffer.from(key).toString('base64').slice(0, 16),
        ]
        const left = forms.filter((form) => reported.includes(form.toLowerCase()))
        expect({ how, left, cut: reported.includes(key.slice(0, 12).toLowerCase()) }).toEqual({
          how,
          left: [],
          cut: false,
        })
        expect(reported).toContain('[struck out]')
      }
    },
  )
})

describe('a key that a client finds itself', () => {
  it('in the environment is kept out of the failure, too', async () => {
    const key = keys['of letters and digits']
    vi.stubEnv('OPENAI_API_KEY', key)
    vi.stubEnv('ANTHROPIC_API_KEY', key)
    const withoutKey: readonly Maker[] = [
      ({ baseURL }) => openai('gpt-test', { baseURL }),
      ({ baseURL }) => openaiChat('gpt-test', { baseURL }),
      ({ baseURL }) => anthropic('claude-test', { baseURL }),
    ]
    for (const make of withoutKey) expect(await failureOf(make, key, `unknown key ${key}`)).not.toContain(key)
  })
})

describe('what is not a key', () => {
  it('stays as the server wrote it, also where the key is a short word', async () => {
    const reported = await failureOf(
      ({ baseURL }) => openaiChat('gpt-test', { baseURL, apiKey: 'test' }),
      'test',
      'The test model is busy: 12.22 s',
    )
    expect(reported).toContain('The test model is busy: 12.22 s')
  })
})
