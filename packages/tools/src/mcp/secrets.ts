import { type KnownSecrets, createKnownSecrets, withoutKeys } from '@tallystick/core/internal'
import { boundText, toVisibleText } from '../define/text.ts'
import { isHttpServer, type McpServer } from './options.ts'

const openHeaders: ReadonlySet<string> = new Set(
  'accept accept-language cache-control content-type user-agent'.split(' '),
)

/** The tokens that are kept: a server may still repeat one that was replaced. */
const maxTokens = 8

/** Secrets of a server, and the tokens that it is sent while it runs. */
export interface LearnedSecrets extends KnownSecrets {
  /** From now on this one is struck out, too. */
  learn(secret: string): void
}

/** The secrets of a server: they are struck out of everything that it says. */
export function findKnownSecrets(server: McpServer): LearnedSecrets {
  const given = listConfigured(server)
  const tokens = new Set<string>()
  let known = createKnownSecrets(given)
  return {
    spansIn: (text) => known.spansIn(text),
    struckFrom: (text, instead) => known.struckFrom(text, instead),
    get maxFormLength() {
      return known.maxFormLength
    },
    learn(secret) {
      if (tokens.has(secret)) return
      tokens.add(secret)
      const [oldest] = tokens
      if (tokens.size > maxTokens && oldest !== undefined) tokens.delete(oldest)
      known = createKnownSecrets([...given, ...tokens])
    },
  }
}

function listConfigured(server: McpServer): readonly string[] {
  const given = server.secrets ?? []
  if (!isHttpServer(server)) {
    const env = server.env ?? {}
    return [...given, ...listNamed(env), ...Object.values(env).flatMap(readPassword)]
  }
  const headers = Object.entries(server.headers ?? {}).flatMap(([name, value]) =>
    openHeaders.has(name.toLowerCase()) ? [] : [value, ...value.split(/[\s;,=]/)],
  )
  const { username, searchParams } = new URL(server.url)
  const parameters = listNamed(Object.fromEntries(searchParams))
  return [...given, ...headers, ...parameters, username, ...readPassword(server.url)]
}

function listNamed(values: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(values).flatMap(([name, value]) => (looksSecret(name) ? [value] : []))
}

/** The password of what may be the URL of a database. */
function readPassword(value: string): readonly string[] {
  const password = URL.parse(value)?.password
  if (password === undefined) return []
  try {
    return [decodeURIComponent(password)]
  } catch {
    return [password]
  }
}

/** True for names of variables and parameters whose values must not be shown. */
export function looksSecret(name: string): boolean {
  return /key|token|secret|passw|credential|auth|cookie|session|bearer|private|dsn|connection/i.test(name)
}

/** A text from a server without what a reader does not see, of `maxCharacters` at most. Line breaks and tabs stay. */
export function cleanText(text: string, maxCharacters: number): string {
  // Bounded first as well: the rest is never looked at.
  const rough = text.slice(0, maxCharacters * 2)
  return boundText(toVisibleText(rough), maxCharacters)
}

/** The same on one line, for a sentence of an error. */
export function cleanLine(text: string, maxCharacters: number): string {
  return cleanText(text, maxCharacters).replaceAll(/\s+/g, ' ').trim()
}

/** A text without the secrets that a server was configured with. */
export function withoutSecrets(given: string, secrets: KnownSecrets): string {
  return secrets.struckFrom(given, () => '[secret]')
}

/** The same, and without what looks like a key: for errors, whose words no tool result depends on. */
export function withoutAnySecrets(given: string, secrets: KnownSecrets): string {
  return withoutKeys(withoutSecrets(given, secrets), () => '[secret]')
}
