import { ConfigurationError } from '@tallystick/core'
import { type KnownSecrets, knownSecrets, secretLengthMin } from '@tallystick/core/vocabulary'
import { readOrigin } from './reach.ts'

/** Headers by the origin that they are for. */
export type OriginHeaders = Readonly<Record<string, Readonly<Record<string, string>>>>

/** The headers for each origin, and the secrets in them that must not be shown. */
export interface HeaderPolicy {
  readonly byOrigin: ReadonlyMap<string, Readonly<Record<string, string>>>
  readonly secrets: KnownSecrets
}

/** Headers that are no secrets, and would make a mess of results if they were masked. */
const alwaysOpen = ['accept', 'accept-language', 'cache-control', 'content-type', 'user-agent']
/** Headers that belong to the connection. */
const reserved = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])

/**
 * Reads the headers that a tool was given; `openHeaders` names those whose value is no secret. Throws `ConfigurationError`,
 * which names no value, also for a secret that is too short to be masked.
 */
export function headerPolicy(
  toolName: string,
  headers: OriginHeaders,
  openHeaders: readonly string[],
): HeaderPolicy {
  const open = new Set([...alwaysOpen, ...openHeaders.map((name) => name.toLowerCase())])
  const byOrigin = new Map<string, Readonly<Record<string, string>>>()
  const secrets: string[] = []
  for (const [origin, given] of Object.entries(headers)) {
    byOrigin.set(readOrigin(toolName, 'headers', origin), given)
    for (const [name, value] of Object.entries(given)) {
      assertHeader(toolName, name, value)
      if (open.has(name.toLowerCase())) continue
      if (coreOf(value).length < secretLengthMin) throw tooShort(toolName, name)
      secrets.push(...formsOf(value))
    }
  }
  return { byOrigin, secrets: knownSecrets(secrets) }
}

/** Puts as many asterisks in place of every secret, so that no other byte moves. */
export function masked(text: string, { secrets }: HeaderPolicy): string {
  return secrets.struckFrom(text, (secret) => '*'.repeat(Buffer.byteLength(secret)))
}

/**
 * Returns a value and the parts of it that a server may repeat alone: the token, name and password of Basic, the values
 * of a cookie.
 */
function formsOf(value: string): readonly string[] {
  const basic = basicOf(value)
  return [value, tokenOf(value), coreOf(value), ...(basic ? [basic] : []), ...value.split(/[\s;,=]/)]
}

/**
 * Returns the part of a value that is the secret: without the scheme, and of Basic the password, or the name if there
 * is no password.
 */
function coreOf(value: string): string {
  const basic = basicOf(value)
  if (basic === undefined) return tokenOf(value)
  const colon = basic.indexOf(':')
  return basic.slice(colon + 1) || basic.slice(0, Math.max(0, colon))
}

function tokenOf(value: string): string {
  return value.slice(value.lastIndexOf(' ') + 1)
}

function basicOf(value: string): string | undefined {
  return /^basic /i.test(value) ? Buffer.from(tokenOf(value), 'base64').toString() : undefined
}

function tooShort(toolName: string, name: string): ConfigurationError {
  return new ConfigurationError(
    `The header ${JSON.stringify(name)} of the tool ${toolName} has a secret of less than ${secretLengthMin} characters: masking it in results would mask other data, too. ` +
      `Use a longer one, or, if its value is no secret, name the header in openHeaders.`,
  )
}

function assertHeader(toolName: string, name: string, value: string): void {
  const wrong = (why: string): ConfigurationError =>
    new ConfigurationError(`The header ${JSON.stringify(name)} of the tool ${toolName} ${why}.`)
  if (reserved.has(name.toLowerCase()))
    throw wrong('belongs to the connection and cannot be set: leave it out')
  if (value === '') throw wrong('has no value: give a string, or leave it out')
  try {
    new Headers().set(name, value)
  } catch {
    throw wrong('has a name or value that HTTP cannot carry: use plain characters in one line')
  }
}
