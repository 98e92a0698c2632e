// Which texts of a configuration are secrets, and what a process of a server is given of the environment.
import { describe, expect, it } from 'vitest'
import { createChildEnvironment, type McpServer } from '../../../src/mcp/options.ts'
import { findKnownSecrets, looksSecret } from '../../../src/mcp/secrets.ts'

/** Whether a text is struck out of what a server says. */
const isStruck = (server: McpServer, text: string): boolean =>
  findKnownSecrets(server).struckFrom(text, () => '*') === '*'
const url = 'https://shop.example/mcp'

describe('a secret', () => {
  it.each<[string, McpServer, string]>([
    ['that is named', { command: 'x', secrets: ['swordfish'] }, 'swordfish'],
    ['that is named for a URL', { url, secrets: ['swordfish'] }, 'swordfish'],
    ['in a variable', { command: 'x', env: { API_KEY: 'swordfish' } }, 'swordfish'],
    ['in the URL of a database', { command: 'x', env: { AT: 'pg://a:swordfish@b' } }, 'swordfish'],
    ['in a header', { url, headers: { 'X-Any': 'swordfish' } }, 'swordfish'],
    ['in words of a header', { url, headers: { 'X-Any': 'sword fish' } }, 'sword fish'],
    ['in a part of a header', { url, headers: { Authorization: 'Basic swordfish' } }, 'swordfish'],
    ['between the signs of a header', { url, headers: { Cookie: 'a=swordfish; b=c' } }, 'swordfish'],
    ['in a parameter', { url: `${url}?token=swordfish` }, 'swordfish'],
    ['for the name of a user', { url: 'https://swordfish@shop.example' }, 'swordfish'],
    ['for the password of a user', { url: 'https://a:swordfish@shop.example' }, 'swordfish'],
    ['as it is written', { url: 'https://a:sword%20fish@shop.example' }, 'sword%20fish'],
    ['as it is meant', { url: 'https://a:sword%20fish@shop.example' }, 'sword fish'],
    ['that cannot be read', { url: 'https://a:swordfish%ff@shop.example' }, 'swordfish%ff'],
  ])('%s is struck out', (_what, server, secret) => {
    expect(isStruck(server, secret)).toBe(true)
  })

  it.each<[string, McpServer]>([
    ['in a variable of another name', { command: 'x', env: { COLOUR: 'swordfish' } }],
    ...['Accept', 'accept-language', 'Cache-Control', 'Content-Type', 'user-agent'].map(
      (name): [string, McpServer] => [`in ${name}`, { url, headers: { [name]: 'swordfish' } }],
    ),
    ['in a parameter of another name', { url: `${url}?colour=swordfish` }],
    ['in a path', { url: `${url}/swordfish` }],
    ['nowhere', { command: 'x' }],
  ])('is not text %s', (_what, server) => {
    expect(isStruck(server, 'swordfish')).toBe(false)
  })

  it('is a token that a server was sent, one of the last eight, in each place where secrets are looked for', () => {
    const secrets = findKnownSecrets({ command: 'x', secrets: ['swordfish'] })
    const token = (at: number): string => `token-number-${at}`
    for (const at of [0, 1, 1, 2, 3, 4, 5, 6, 7]) secrets.learn(token(at))
    const struck = (text: string): boolean => secrets.struckFrom(text, () => '*') === '*'
    expect([token(0), token(7), 'swordfish'].map(struck)).toEqual([true, true, true])
    secrets.learn(token(8))
    expect([token(0), token(1), token(8), 'swordfish'].map(struck)).toEqual([false, true, true, true])
    expect(secrets.spansIn(`a ${token(8)}`)).toEqual([{ start: 2, end: 16 }])
    expect(secrets.maxFormLength).toBeGreaterThan(16)
  })

  it.each([
    'APIKEY',
    'my_token',
    'Secret',
    'PASSWD',
    'credentials',
    'AUTH',
    'cookie',
    'SESSION',
    'bearer',
    'PRIVATE',
    'DSN',
    'connection',
  ])('is what the name %s is given for', (name) => {
    expect(looksSecret(name)).toBe(true)
  })
})

describe('the environment of a process', () => {
  const posix = ['HOME', 'LANG', 'LC_ALL', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'TMPDIR', 'TZ', 'USER']
  const windows = [
    ...[
      'APPDATA',
      'COMSPEC',
      'HOMEDRIVE',
      'HOMEPATH',
      'LOCALAPPDATA',
      'PATH',
      'PATHEXT',
      'PROCESSOR_ARCHITECTURE',
    ],
    ...[
      'PROGRAMDATA',
      'PROGRAMFILES',
      'PROGRAMFILES(X86)',
      'PROGRAMW6432',
      'SYSTEMDRIVE',
      'SYSTEMROOT',
      'TEMP',
    ],
    ...['USERNAME', 'USERPROFILE', 'WINDIR'],
  ]
  it('is what programs need on a system, and what the configuration names', () => {
    const host = Object.fromEntries([...posix, ...windows, 'API_KEY'].map((name) => [name, name]))
    const names = (platform: NodeJS.Platform) =>
      Object.keys(createChildEnvironment(host, {}, platform)).toSorted()
    expect(names('linux')).toEqual(posix.toSorted())
    expect(names('win32')).toEqual(windows.toSorted())
    expect(
      createChildEnvironment({ HOME: '/h', PATH: '/b' }, { HOME: '/own', A: '1', B: undefined }, 'linux'),
    ).toEqual({
      ...{ HOME: '/own', PATH: '/b', A: '1' },
    })
  })

  it('holds no function of a shell', () => {
    expect(createChildEnvironment({ TERM: '() { :; }', TZ: 'a()' }, {}, 'linux')).toEqual({ TZ: 'a()' })
  })
})
