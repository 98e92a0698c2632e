import { ConfigurationError } from '@tallystick/core'
import { readOrigin } from './reach.ts'

/** Headers by the origin that they are for. */
export type OriginHeaders = Readonly<Record<string, Readonly<Record<string, string>>>>

/** What is sent to whom, and what of it must not be shown. */
export interface HeaderPolicy {
  readonly byOrigin: ReadonlyMap<string, Readonly<Record<string, string>>>
  /** What to look for, the longest first. */
  readonly secrets: readonly string[]
  /** Bytes of the longest secret. */
  readonly secretBytesMax: number
}

/** Headers that are no secrets, and would make a mess of results if they were masked. */
const open = new Set(['accept', 'accept-language', 'cache-control', 'content-type', 'user-agent'])
/** Headers that belong to the connection. */
const reserved = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
])
/** Shorter pieces of a header's value are words, not secrets. */
const pieceCharactersMin = 6

/** Reads the headers that a tool was given. Throws `ConfigurationError`, which names no value. */
export function headerPolicy(toolName: string, headers: OriginHeaders): HeaderPolicy {
  const byOrigin = new Map<string, Readonly<Record<string, string>>>()
  const secrets = new Set<string>()
  for (const [origin, given] of Object.entries(headers)) {
    byOrigin.set(readOrigin(toolName, 'headers', origin), given)
    for (const [name, value] of Object.entries(given)) {
      assertHeader(toolName, name, value)
      if (!open.has(name.toLowerCase())) for (const secret of formsOf(value)) secrets.add(secret)
    }
  }
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length)
  return {
    byOrigin,
    secrets: longestFirst,
    secretBytesMax: Math.max(0, ...longestFirst.map((secret) => Buffer.byteLength(secret))),
  }
}

/** Puts as many asterisks in place of every secret, so that no other character moves. */
export function masked(text: string, { secrets }: HeaderPolicy): string {
  let result = text
  for (const secret of secrets) result = result.replaceAll(secret, '*'.repeat(Buffer.byteLength(secret)))
  return result
}

/** A value and the forms that a server may repeat it in: the token alone, the password of Basic, escaped. */
function formsOf(value: string): readonly string[] {
  const token = value.slice(value.lastIndexOf(' ') + 1)
  const basic = /^basic /i.test(value) ? Buffer.from(token, 'base64').toString() : ''
  const pieces = [token, basic, basic.slice(basic.indexOf(':') + 1)]
  const found = [value, ...pieces.filter((piece) => piece.length >= pieceCharactersMin)]
  const escaped = found.flatMap((form) => [encodeURIComponent(form), JSON.stringify(form).slice(1, -1)])
  return [...found, ...escaped].filter((form) => form !== '')
}

function assertHeader(toolName: string, name: string, value: string): void {
  const wrong = (why: string): ConfigurationError =>
    new ConfigurationError(`The header ${JSON.stringify(name)} of the tool ${toolName} ${why}.`)
  if (reserved.has(name.toLowerCase()))
    throw wrong('belongs to the connection and cannot be set: leave it out')
  if (typeof value !== 'string' || value === '') throw wrong('has no value: give a string, or leave it out')
  try {
    new Headers().set(name, value)
  } catch {
    throw wrong('has a name or value that HTTP cannot carry: use plain characters in one line')
  }
}
