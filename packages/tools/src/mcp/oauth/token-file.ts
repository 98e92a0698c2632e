import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { client } from '../options/client-library.ts'
import { ConfigurationError } from '@tallystick/core'

/** What is kept of one server. */
export interface Kept {
  readonly client?: client.StoredOAuthClientInformation | undefined
  readonly tokens?: client.StoredOAuthTokens | undefined
  readonly discovery?: client.OAuthDiscoveryState | undefined
}

/** The part of a file that is about one server. */
export interface TokenFile {
  read(): Kept
  /** Changes what is given, and keeps the rest; `undefined` removes. */
  change(kept: Kept): void
}

/**
 * The tokens of the server at a URL, in a file that may hold those of others. It is read each time, since other processes
 * change it; only its owner can read it, and it is replaced at once.
 */
export function tokenFile(path: string, url: string): TokenFile {
  const all = (): Readonly<Record<string, Kept>> => {
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
      throw unusable(path, 'cannot be read', error)
    }
    try {
      const read: unknown = JSON.parse(text)
      if (typeof read === 'object' && read !== null && !Array.isArray(read))
        return read as Record<string, Kept>
    } catch {
      // Said below, without what the file holds.
    }
    throw unusable(path, 'holds something else')
  }
  const read = (): Kept => {
    const every = all()
    return Object.hasOwn(every, url) ? Object(every[url]) : {}
  }
  return {
    read,
    change(kept) {
      const next = Object.fromEntries([
        ...Object.entries(all()).filter(([each]) => each !== url),
        [url, { ...read(), ...kept }],
      ])
      const beside = `${path}.${randomUUID()}.tmp`
      try {
        writeFileSync(beside, `${JSON.stringify(next, null, 2)}\n`, { flag: 'wx', mode: 0o600 })
        renameSync(beside, path)
      } catch (error) {
        rmSync(beside, { force: true })
        throw unusable(path, 'cannot be written', error)
      }
    },
  }
}

function unusable(path: string, what: string, cause?: unknown): ConfigurationError {
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
  return new ConfigurationError(
    `oauthServer: the file of tokens ${path} ${what}${code}. Give another path, or delete it and sign in again.`,
    { cause },
  )
}
