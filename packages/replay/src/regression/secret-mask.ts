import { isRegExp } from 'node:util/types'
import { option, type OptionalCheck } from '@tallystick/core/kit'
import { keysIn, parseToolCallId, type Json } from '@tallystick/core/vocabulary'
import { type NamedSecret, namedSecretsIn } from './named-secrets.ts'
import { scannedSecretsIn } from './scanned-secrets.ts'
import { isSecretName } from './secret-name.ts'

/** Patterns of a caller, which may be left out. */
export const ownSecretPatterns: OptionalCheck = option.maybe(
  option.listOf(option.valueThat('a regular expression', isRegExp)),
)

/** What else a secret looks like in a text. Of a pattern with a group only what the group matches is masked. */
const secretPatterns: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/dg,
  /\b(?:bearer|basic)[ \t]+([A-Za-z0-9+/=_.~-]{8,})/dgi,
  // A password may hold an @ itself: the last one before the host ends it.
  /:\/\/[^\s/@:"']*:([^\s/"']+)@/dg,
  /:\/\/([^\s/@:"'?#]{20,})@/dg,
  // The signature that opens a file to whoever has its address.
  /[?&](?:[\w-]*-)?(?:sig|signature)=([^\s&#"'\\<>]{8,})/dgi,
  // A key in hexadecimal is told from a digest by the word before it.
  /\b(?:key|secret|token|password|passphrase|pwd)\b[^\n\da-f]{1,12}\b([\da-f]{32,})\b/dgi,
  /\bpwd=([^\s;&"'/\\~.][^\s;&"'\\]{3,})/dg,
]

const placeholder = '[redacted]'
/** Characters that stay, since JSON writes them longer than others: a text is as long as before in both forms. */
const kept = /["\\\n\r\t\b\f]/

/** The characters of a secret, masked. The same at every time, and again when it is masked a second time. */
function masked(secret: string): string {
  let text = ''
  let written = 0
  for (const unit of secret.split('')) text += kept.test(unit) ? unit : (placeholder[written++] ?? '*')
  return text
}

/**
 * Masks what looks like a secret, in texts and in JSON values, by a text of the same length: what is counted by length,
 * such as the estimated tokens of a history, comes out as before.
 */
export class SecretMask {
  readonly #patterns: readonly RegExp[]
  /** Whether a caller added patterns, which may match what no secret is. */
  readonly hasOwnPatterns: boolean

  /** `more`: patterns of the caller's own. */
  constructor(more: readonly RegExp[] = []) {
    const flagged = more.map(({ source, flags }) => new RegExp(source, `${flags.replaceAll(/[dgy]/g, '')}dg`))
    this.#patterns = [...secretPatterns, ...flagged]
    this.hasOwnPatterns = more.length > 0
  }

  /** A text without its secrets. */
  text(text: string): string {
    const named = maskedAt(text, namedSecretsIn(text))
    const keyless = maskedAt(named, keysIn(named))
    return this.#patterns.reduce(maskedBy, maskedAt(keyless, scannedSecretsIn(keyless)))
  }

  /**
   * A JSON value without its secrets: texts are masked, and whole where the name of their field says so. The id of a tool
   * call, which the runtime made, is no secret.
   */
  value<T>(value: T): T {
    return this.#masked(value as Json, false) as T
  }

  #masked(value: Json, isSecret: boolean): Json {
    if (typeof value === 'string') {
      if (isSecret) return masked(value)
      return parseToolCallId(value) === undefined ? this.text(value) : value
    }
    if (typeof value === 'number' && isSecret) return Number(maskedNumber(String(value)))
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item: Json) => this.#masked(item, isSecret))
    return Object.fromEntries(
      // What a secret name holds as an object may be the schema of a field: only texts are secrets.
      Object.entries(value).map(([name, field]) => [name, this.#masked(field, isSecretName(name))]),
    )
  }
}

/** A run of backslashes with what it may escape, or one other character. */
const unit = /(\\+)(u[0-9a-fA-F]{4}|[nrtbf"])?|[^\\]/g

/**
 * The characters of a secret within quotes, masked so that its escapes stay escapes of as many characters: read as
 * JSON, it is what `masked` makes of the secret itself. `nested` is the number of backslashes before a quote that is
 * not escaped.
 */
function maskedEscaped(secret: string, nested: number): string {
  let written = 0
  const next = (): string => placeholder[written++] ?? '*'
  const plain = (text: string): string =>
    text
      .split('')
      .map((character) => (kept.test(character) ? character : next()))
      .join('')
  return secret.replaceAll(unit, (whole, backslashes: string = '', escaped: string = '') => {
    // An even number of backslashes is so many of them, and escapes nothing.
    const isEscape = escaped !== '' && Math.floor(backslashes.length / (nested + 1)) % 2 === 1
    if (!isEscape) return backslashes + plain(whole.slice(backslashes.length))
    const code = escaped.startsWith('u') ? Number.parseInt(escaped.slice(1), 16) : undefined
    if (code === undefined || kept.test(String.fromCharCode(code))) return whole
    return `${backslashes}u${next().charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** A number of as many digits. */
function maskedNumber(digits: string): string {
  const exponent = digits.search(/e/i)
  const end = exponent === -1 ? digits.length : exponent
  return digits.slice(0, end).replaceAll(/\d/g, '1') + digits.slice(end)
}

function maskedAt(text: string, secrets: readonly NamedSecret[]): string {
  let result = ''
  let from = 0
  for (const { start, end, isNumber, nested = 0 } of secrets) {
    const secret = text.slice(start, end)
    result += text.slice(from, start) + (isNumber ? maskedNumber(secret) : maskedEscaped(secret, nested))
    from = end
  }
  return result + text.slice(from)
}

function maskedBy(text: string, pattern: RegExp): string {
  const spans = Array.from(text.matchAll(pattern), ({ indices }) => {
    const [start, end] = indices?.[1] ?? indices?.[0] ?? [0, 0]
    return { start, end }
  })
  return maskedAt(text, spans)
}
