// The file in which tokens of servers are kept, beside what other processes keep there.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openTokenFile } from '../../src/mcp/oauth.ts'

let folder: string
let files = 0
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tallystick-tokens-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const url = 'https://shop.example/mcp'
const kept = (accessToken: string): Parameters<ReturnType<typeof openTokenFile>['change']>[0] => ({
  tokens: { access_token: accessToken, token_type: 'Bearer' },
})

/** The file of a test, which holds this text. */
function holding(text?: string): string {
  const path = join(folder, `${++files}.json`)
  if (text !== undefined) writeFileSync(path, text)
  return path
}

describe('the file of tokens', () => {
  it('given no file, when it is read, then it holds nothing, and a change makes one that only its owner reads', () => {
    const path = holding()
    const file = openTokenFile(path, url)
    expect(file.read()).toEqual({})
    file.change(kept('a'))
    expect(file.read()).toEqual(kept('a'))
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('given tokens of another server, when those of one change, then the others stay', () => {
    const path = holding()
    const other = openTokenFile(path, 'https://other.example/mcp')
    const file = openTokenFile(path, url)
    other.change(kept('b'))
    file.change(kept('a'))
    file.change({})
    expect([other.read(), file.read()]).toEqual([kept('b'), kept('a')])
    file.change(kept('c'))
    expect([other.read(), file.read()]).toEqual([kept('b'), kept('c')])
    file.change({ tokens: undefined })
    expect([other.read(), file.read()]).toEqual([kept('b'), {}])
    expect(readFileSync(path, 'utf8').endsWith('}\n')).toBe(true)
  })

  it.each(['', '{', 'null', '7', '"secret"', '[]'])(
    'given %j in it, when it is read, then the error says that it holds something else, and not what',
    (text) => {
      const path = holding(text)
      const read = (): unknown => openTokenFile(path, url).read()
      expect(read).toThrow(ConfigurationError)
      expect(read).toThrow(`the file of tokens ${path} holds something else. Give another path`)
      expect(read).not.toThrow('secret')
    },
  )

  it('given a name that every object has, when it is read for that, then it holds nothing', () => {
    expect(openTokenFile(holding('{}'), 'constructor').read()).toEqual({})
  })

  it('given a folder in its place, when it is read or changed, then the error says why, and no other file is left', () => {
    const file = openTokenFile(folder, url)
    expect(() => file.read()).toThrow(/cannot be read \(EISDIR\)/)
    const path = join(folder, 'missing', 'tokens.json')
    expect(() => openTokenFile(path, url).change(kept('a'))).toThrow(/cannot be written \(ENOENT\)/)
    expect(readdirSync(folder).filter((name) => name.includes('.tmp'))).toEqual([])
  })
})
