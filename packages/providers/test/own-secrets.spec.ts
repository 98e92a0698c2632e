import { Buffer } from 'node:buffer'
import { createOpenAI } from '@ai-sdk/openai'
import Anthropic from '@anthropic-ai/sdk'
import { ProviderError, type Model } from '@tallystick/core'
import OpenAI from 'openai'
import { describe, expect, it, vi, afterEach } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat } from '../src/openai.ts'
import { OwnSecrets } from '../src/shared/secrets.ts'
import { collect } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'

const secret = 'swordfish-is-my-key'

const failed = (message: string, requestId?: string) =>
  new ProviderError({
    ...{ class: 'server', retryable: true, message, status: 500 },
    ...(requestId !== undefined && { requestId }),
  })

/** What is left of a failure's message. */
function reported(secrets: OwnSecrets, message: string): string {
  return (secrets.strikeFrom(failed(message)) as ProviderError).message
}

describe('a secret in the options', () => {
  const cyclic: Record<string, unknown> = { name: 'client', nested: { apiKey: secret } }
  cyclic['itself'] = cyclic

  it.each<[where: string, options: unknown, isSecret: boolean]>([
    ['a key', { apiKey: secret }, true],
    ['a key by another spelling', { 'api-key': secret }, true],
    ['a token of an MCP server', { mcpServers: [{ authorizationToken: secret }] }, true],
    ['an option of any other name', { instructions: secret }, false],
    ['a client that holds itself', cyclic, true],
    ['a header', { headers: { 'x-gateway': secret } }, true],
    ['headers of another name', { defaultHeaders: { 'x-gateway': secret } }, true],
    ['Headers', { headers: new Headers({ 'x-gateway': secret }) }, true],
    ['a header that says nothing of its sender', { headers: { 'content-type': secret } }, false],
    ['the version of an API', { headers: { 'anthropic-version': secret } }, false],
    ['headers that are none', { headers: secret }, false],
    ['a header that is not text', { headers: { 'x-gateway': [secret] } }, false],
    ['a value after its scheme', { headers: { authorization: `Bearer ${secret}` } }, true],
    ['a cookie', { headers: { cookie: `a=b; session=${secret}` } }, true],
    ['a list', { headers: { 'x-keys': `first-of-them,${secret}` } }, true],
    ['a Basic name and password', { headers: { authorization: `Basic ${btoa(`me:${secret}`)}` } }, true],
    ['a Basic scheme that is not a Base64', { headers: { authorization: 'Basic !' }, apiKey: secret }, true],
    ['the password of an address', { baseURL: `https://me:${secret}@host.example/v1` }, true],
    ['an escaped password', { baseURL: `https://me:${escaped(secret)}@host.example/v1` }, true],
    ['a password with a stray per cent', { baseURL: `https://me:${secret}%zz@host.example/` }, false],
    ['a parameter called key', { url: `https://host.example/?key=${secret}` }, true],
    ['a parameter that is named for it', { url: `https://host.example/?access_token=${secret}` }, true],
    ['a parameter of any other name', { url: `https://host.example/?name=${secret}` }, false],
    ['an address of an option that is called otherwise', { place: `https://x/?key=${secret}` }, false],
    ['an address that is none', { baseURL: `key=${secret}` }, false],
    ['no options', null, false],
  ])('is struck out of a failure or not: %s', (_, options, isSecret) => {
    const message = `The service says: ${secret} is unknown`
    expect(reported(new OwnSecrets(options), message)).toBe(
      isSecret ? 'The service says: [struck out] is unknown' : message,
    )
  })

  it('with a stray per cent in an address is struck out as it is written there', () => {
    const stray = `${secret}%zz`
    expect(reported(new OwnSecrets({ baseURL: `https://me:${stray}@host.example/` }), `no ${stray}!`)).toBe(
      'no [struck out]!',
    )
  })

  it('that is shorter than a secret stays', () => {
    const secrets = new OwnSecrets({ apiKey: 'a-short' })
    expect(reported(secrets, 'a-short word, a-sh…')).toBe('a-short word, a-sh…')
  })

  it.each([
    ['Wrong key swordfish-is…', 'Wrong key [struck out]…'],
    ['Wrong key SWORDFISH-is…', 'Wrong key [struck out]…'],
    ['Wrong key swordfish-is-my-ke…', 'Wrong key [struck out]…'],
    ['Wrong key swor…', 'Wrong key [struck out]…'],
    ['Wrong key swo…', 'Wrong key swo…'],
    ['Wrong key sword', 'Wrong key sword'],
    ['Wrong sword… key sword', 'Wrong [struck out]… key sword'],
    ['Two: sword… and fish-is… and swordf… end', 'Two: [struck out]… and fish-is… and [struck out]… end'],
  ])('leaves no beginning where a text was cut: %s', (message, left) => {
    expect(reported(new OwnSecrets({ apiKey: secret }), message)).toBe(left)
  })
})

describe('a failure', () => {
  it('keeps all that is not a secret, its cause as well', () => {
    const cause = new Error('why')
    const { class: failureClass, retryable, status } = failed('')
    const error = new ProviderError(
      {
        class: failureClass,
        retryable,
        status: status!,
        message: `no ${secret}`,
        requestId: `req-${secret}`,
      },
      { cause },
    )
    const struck = new OwnSecrets({ apiKey: secret }).strikeFrom(error) as ProviderError
    expect(struck.toFailure()).toEqual({
      ...{ class: 'server', retryable: true, status: 500 },
      ...{ message: 'no [struck out]', requestId: 'req-[struck out]' },
    })
    expect(struck.cause).toBe(cause)
  })

  it('is changed where its request id alone holds a secret', () => {
    const struck = new OwnSecrets({ apiKey: secret }).strikeFrom(failed('Oops', secret))
    expect(struck).toMatchObject({ message: 'Oops', requestId: '[struck out]' })
  })

  it.each<[string, unknown]>([
    ['one without a secret', failed('Oops', 'req-1')],
    ['one without a request id', failed('Oops')],
    ['another error', new Error(secret)],
  ])('stays the same object: %s', (_, error) => {
    expect(new OwnSecrets({ apiKey: secret }).strikeFrom(error)).toBe(error)
  })
})

describe('what a request carries', () => {
  const other = 'another-key-of-mine'
  const request = () => new Request('https://host.example/', { headers: { 'x-key': secret } })

  it.each<[string, Parameters<typeof fetch>, readonly string[]]>([
    ['its headers', ['https://host.example/', { headers: { 'x-key': secret } }], [secret]],
    ['the headers of a Request', [request()], [secret]],
    [
      'headers beside a Request, which replace its own',
      [request(), { headers: { 'x-key': other } }],
      [other],
    ],
    ['a parameter of its address', [`https://host.example/?key=${secret}`], [secret]],
    ['a parameter of a URL', [new URL(`https://host.example/?key=${secret}`)], [secret]],
    ['a parameter of a Request', [new Request(`https://host.example/?key=${secret}`)], [secret]],
    ['no secret', ['https://host.example/', {}], []],
  ])('is a secret from then on, also after a first failure: %s', async (_, call, found) => {
    const answer = new Response()
    const fetch = vi.fn<typeof globalThis.fetch>(() => Promise.resolve(answer))
    const secrets = new OwnSecrets({})
    const message = `no ${secret}, no ${other}`
    expect(reported(secrets, message)).toBe(message)
    expect(await secrets.noting(fetch)(...call)).toBe(answer)
    expect(fetch.mock.calls).toEqual([call.length === 1 ? [call[0], undefined] : call])
    expect(reported(secrets, message)).toBe(
      found.reduce((text, one) => text.replace(one, '[struck out]'), message),
    )
  })

  it('may be noted by name', () => {
    const secrets = new OwnSecrets({})
    secrets.note({ token: secret })
    expect(reported(secrets, secret)).toBe('[struck out]')
  })
})

function escaped(text: string): string {
  return text.replaceAll(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`)
}

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
