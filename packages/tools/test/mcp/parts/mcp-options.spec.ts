import type { FetchLike, OAuthClientProvider } from '@modelcontextprotocol/client'
import { ConfigurationError } from '@tallystick/core'
import type { McpOptions } from '@tallystick/tools/mcp'
import { describe, expect, it } from 'vitest'
import { readNegotiation } from '../../../src/mcp/client.ts'
import { renewDiscovery } from '../../../src/mcp/fetch.ts'
import { readEffect } from '../../../src/mcp/mcp-tools.ts'
import { isHttpUrl, mcpServer, requireMcpOptions, toRootUri } from '../../../src/mcp/options.ts'

// Every value that an option of MCP servers may have, and the values just beside them.

interface Values {
  readonly taken: readonly unknown[]
  readonly refused: readonly unknown[]
}

const flag: Values = { taken: [true, false, undefined], refused: [1, 'yes', null] }
const wait: Values = { taken: [1, 2 ** 31 - 1, undefined], refused: [0, 1.5, 2 ** 31, '1', null] }
const names: Values = { taken: [[], ['a'], undefined], refused: ['a', [''], [1], null] }
const work: Values = { taken: [() => {}, undefined], refused: ['x', {}, null] }
const whole = (min: number): Values => ({
  ...{ taken: [min, min + 1, undefined], refused: [min - 1, min + 0.5, '1', null] },
})

const ofAnyServer: Readonly<Record<string, Values>> = {
  trusted: flag,
  approval: { taken: ['always', 'never', () => true, undefined], refused: ['sometimes', true, null] },
  includeTools: names,
  excludeTools: names,
  timeoutMs: wait,
  maxTotalMs: wait,
  startMs: wait,
  maxMessageBytes: whole(1_000),
  maxResultCharacters: whole(1),
  era: { taken: ['legacy', 'auto', '2026-07-28', undefined], refused: ['2025-11-25', 1, null] },
  required: flag,
  disabled: flag,
  secrets: { taken: [[], ['', 'a'], undefined], refused: ['a', [1], null] },
  roots: {
    taken: [[], ['/a', 'file:///b'], undefined],
    refused: ['/a', ['a'], ['http://a.example'], [1], null],
  },
}
const ofProgram: Readonly<Record<string, Values>> = {
  ...ofAnyServer,
  type: { taken: ['stdio', undefined], refused: ['http', '', null] },
  command: { taken: ['x'], refused: ['', 1, null] },
  args: { taken: [[], ['', 'a'], undefined], refused: ['a', [1], ['a\0'], null] },
  env: { taken: [{}, { A: '' }, undefined], refused: ['a', { A: 1 }, { A: 'a\0' }, null] },
  cwd: { taken: ['a', undefined], refused: ['', 1, null] },
}
const ofUrl: Readonly<Record<string, Values>> = {
  ...ofAnyServer,
  type: { taken: ['http', 'sse', undefined], refused: ['stdio', '', null] },
  url: { taken: ['http://a.example', 'https://a.example/b'], refused: ['', 'a', 'ftp://a.example', 1, null] },
  headers: { taken: [{}, { a: '' }, undefined], refused: ['a', { a: 1 }, null] },
  authProvider: { taken: [{}, undefined], refused: ['a', 1, null] },
  authorizationCallback: work,
  fetch: work,
}
const ofManager: Readonly<Record<string, Values>> = {
  servers: { taken: [{}, { a: { command: 'x' } }], refused: ['a', { a: 1 }, { a: null }, null, undefined] },
  pins: { taken: [{}, { a: 'b' }, undefined], refused: ['a', { a: '' }, null] },
  reconnect: {
    taken: [{}, { baseMs: 1, capMs: 1, maxAttempts: 0 }, undefined],
    refused: [
      ...[1, null, { baseMs: 0 }, { capMs: 0 }, { maxAttempts: -1 }, { maxAttempts: 0.5 }, { delay: 1 }],
    ],
  },
  traceparent: work,
  environment: { taken: [{}, undefined], refused: ['a', null] },
  timers: { taken: [{}, undefined], refused: ['a', null] },
  random: work,
  elicit: work,
  sample: work,
}

const faultOf = (server: unknown) => mcpServer(server)
const isRefused = (options: object): boolean => {
  try {
    requireMcpOptions(options as McpOptions)
    return false
  } catch (error) {
    return error instanceof ConfigurationError
  }
}
const cases = [
  ...Object.entries(ofProgram).map(([option, values]) => ({
    ...{ of: 'a program', option, values },
    refuses: (value: unknown) => faultOf({ command: 'x', [option]: value }) !== undefined,
  })),
  ...Object.entries(ofUrl).map(([option, values]) => ({
    ...{ of: 'a URL', option, values },
    refuses: (value: unknown) => faultOf({ url: 'http://a.example', [option]: value }) !== undefined,
  })),
  ...Object.entries(ofManager).map(([option, values]) => ({
    ...{ of: 'all servers', option, values },
    refuses: (value: unknown) => isRefused({ servers: {}, [option]: value }),
  })),
]

describe('an option', () => {
  it.each(cases)('$option of $of takes its values, and no other', ({ values, refuses }) => {
    expect(values.taken.map(refuses)).toEqual(values.taken.map(() => false))
    expect(values.refused.map(refuses)).toEqual(values.refused.map(() => true))
  })

  it.each<[object, object]>([
    [{ command: 'x' }, { timeout: 'timeoutMs', trust: 'trusted', enabledTools: 'includeTools' }],
    [{ command: 'x' }, { disabledTools: 'excludeTools', environment: 'env', arguments: 'args' }],
    [
      { url: 'http://a.example' },
      { timeout: 'timeoutMs', serverUrl: 'url', httpUrl: 'url', auth: 'authProvider' },
    ],
  ])('of %j by another name is refused, and named', (server, otherNames) => {
    for (const [other, meant] of Object.entries(otherNames))
      expect(faultOf({ ...server, [other]: 'x' })?.what).toContain(`Did you mean ${meant}?`)
  })

  it('of all servers by another name is refused, and named', () => {
    const otherNames = {
      ...{ mcpServers: 'servers', onElicitation: 'elicit', elicitation: 'elicit' },
      ...{ sampling: 'sample', env: 'environment' },
    }
    for (const [other, meant] of Object.entries(otherNames))
      expect(() => requireMcpOptions({ servers: {}, [other]: {} })).toThrow(`Did you mean ${meant}?`)
  })
})

describe('a server', () => {
  it.each<[string, unknown, string]>([
    [
      'a command and a URL',
      { command: 'x', url: 'http://a.example' },
      'has a command and a url; give one of the two',
    ],
    ['neither', {}, 'has neither a command nor a url; give the one that its server is reached by'],
  ])('with %s is refused', (_what, server, what) => {
    expect(faultOf(server)).toEqual({ path: '', what })
  })

  it.each([null, 'x', 1])('that is %j is not a server', (server) => {
    expect(faultOf(server)?.what).toMatch(/expected an object/)
  })
})

describe('a place', () => {
  it.each([
    ['/a b', 'file:///a%20b'],
    ['file:///a', 'file:///a'],
    ['a', undefined],
    ['http://a.example', undefined],
    [1, undefined],
  ])('%j of a folder has the URL %j', (root, url) => {
    expect(toRootUri(root)).toBe(url)
  })

  it('is reached over HTTP where its URL says so', () => {
    expect(['http://a', 'https://a', 'ftp://a', 'a', '', 1].map(isHttpUrl)).toEqual([
      ...[true, true, false, false, false, false],
    ])
  })
})

// How the revision of the protocol is found out with each kind of server.

const url = 'http://127.0.0.1/mcp'
const [fiveSeconds, noEnd] = [5_000, 2 ** 31 - 1]

describe('the negotiation with a server', () => {
  it.each([
    ['a process', { command: 'x' }, 'legacy', fiveSeconds],
    ['a process that may be a newer one', { command: 'x', era: 'auto' }, 'auto', fiveSeconds],
    ['a URL', { url }, 'auto', noEnd],
    ['a URL of the older way', { url, type: 'sse' }, 'legacy', noEnd],
    ['a URL without a question', { url, era: 'legacy' }, 'legacy', noEnd],
    ['a URL of one revision', { url, era: '2026-07-28' }, { pin: '2026-07-28' }, noEnd],
  ] as const)('given %s, then %o begins with %o, and waits for %i ms', (_which, options, mode, timeoutMs) => {
    expect(readNegotiation(options)).toEqual({ mode, probe: { timeoutMs } })
  })
})

describe('a tool of a server', () => {
  it.each([
    [{ readOnlyHint: true, idempotentHint: true }, false, 'write', 'report'],
    [{ readOnlyHint: true }, true, 'read', 'rerun'],
    [{ readOnlyHint: false, idempotentHint: true }, true, 'write', 'rerun'],
    [{ idempotentHint: false }, true, 'write', 'report'],
    [{}, true, 'write', 'report'],
  ])('with %j, believed: %s', (annotations, isTrusted, effect, recovery) => {
    expect(readEffect(annotations, isTrusted)).toEqual({ effect, recovery })
  })
})

describe('an authorization server that was found', () => {
  // When a provider of OAuth forgets which authorization server it found.

  const url = 'https://a.example/mcp'
  const token = { headers: { authorization: 'Bearer t' } }

  /** Fetches with an answer of this status, and returns what is forgotten. */
  async function forgotten(status: number, at: string | URL, init?: RequestInit): Promise<readonly string[]> {
    const scopes: string[] = []
    const provider = { invalidateCredentials: (scope) => void scopes.push(scope) } as OAuthClientProvider
    const answer = new Response(null, { status })
    const fetching = renewDiscovery(async () => answer, url, provider)
    expect(await fetching(at, init)).toBe(answer)
    return scopes
  }

  it('given a server that refuses a token, then it is forgotten', async () => {
    expect(await forgotten(401, url, token)).toEqual(['discovery'])
    expect(await forgotten(401, new URL(url), token)).toEqual(['discovery'])
  })

  it('given another answer, another URL, or no token, then it is kept', async () => {
    expect(await forgotten(200, url, token)).toEqual([])
    expect(await forgotten(403, url, token)).toEqual([])
    expect(await forgotten(401, 'https://a.example/token', token)).toEqual([])
    expect(await forgotten(401, url, {})).toEqual([])
    expect(await forgotten(401, url)).toEqual([])
  })

  it('given a provider that cannot forget, or none, then nothing is done', async () => {
    const inner: FetchLike = async () => new Response(null, { status: 401 })
    expect(renewDiscovery(inner, url, undefined)).toBe(inner)
    expect(renewDiscovery(inner, url, { token: async () => 't' })).toBe(inner)
    const unable = { invalidateCredentials: undefined } as unknown as OAuthClientProvider
    expect((await renewDiscovery(inner, url, unable)(url, token)).status).toBe(401)
  })
})
