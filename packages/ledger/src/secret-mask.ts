import type { Json } from '@tallystick/core'

/** Names of fields, headers and parameters whose value is a secret, in lower case and without `-` and `_`. */
const secretNames: ReadonlySet<string> = new Set([
  ...['authorization', 'proxyauthorization', 'cookie', 'setcookie', 'xapikey', 'apikey', 'xauthtoken'],
  ...['password', 'passwd', 'passphrase', 'secret', 'clientsecret', 'secretkey', 'privatekey', 'signingkey'],
  ...['token', 'accesstoken', 'refreshtoken', 'idtoken', 'authtoken', 'bearertoken', 'sessiontoken'],
  ...['accesskey', 'accesskeyid', 'secretaccesskey', 'credential', 'credentials', 'connectionstring'],
])

const names =
  'authorization|proxy[-_]?authorization|set[-_]?cookie|cookie|x[-_]api[-_]key|api[-_]?key|x[-_]auth[-_]token|' +
  'password|passwd|passphrase|client[-_]?secret|secret[-_]?(?:access[-_]?)?key|secret|private[-_]?key|' +
  '(?:access|refresh|id|auth|bearer|session)[-_]?token|token'

/** What a secret looks like in a text. Of a pattern with a group only what the group matches is masked. */
const secretPatterns: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/dg,
  // Header lines, JSON (also within a JSON text), and parameters.
  /\b(?:(?:proxy-)?authorization|(?:set-)?cookie|x-api-key|api-key|x-auth-token)[ \t]*:[ \t]*([^\r\n"'\\]+)/dgi,
  new RegExp(`(?<!\\\\)"(?:${names})"\\s*:\\s*"((?:[^"\\\\]|\\\\.)+)`, 'dgi'),
  new RegExp(`\\\\+"(?:${names})\\\\+"\\s*:\\s*\\\\+"((?:[^"\\\\]|\\\\(?!"))+)`, 'dgi'),
  new RegExp(`\\b(?:${names})=([^\\s&;,"'\\\\]+)`, 'dgi'),
  /\b(?:password|passwd|passphrase|api[-_]?key|client[-_]?secret|access[-_]?token)[ \t]*:[ \t]+([^\s"',;]{4,})/dgi,
  /\b(?:bearer|basic)[ \t]+([A-Za-z0-9+/=_.~-]{8,})/dgi,
  /:\/\/[^\s/@:"']+:([^\s/@"']+)@/dg,
  // Keys that say by themselves whose they are.
  /(?<![a-z])sk-[A-Za-z0-9_-]{16,}/dg,
  /[spr]k_(?:live|test)_[A-Za-z0-9]{10,}/dg,
  /gh[pousr]_[A-Za-z0-9]{20,}/dg,
  /github_pat_[A-Za-z0-9_]{20,}/dg,
  /glpat-[A-Za-z0-9_-]{16,}/dg,
  /xox[abeprs]-[A-Za-z0-9-]{10,}/dg,
  /(?:AKIA|ASIA)[A-Z0-9]{16}/dg,
  /AIza[A-Za-z0-9_-]{30,}/dg,
  /ya29\.[A-Za-z0-9_-]{16,}/dg,
  /npm_[A-Za-z0-9]{30,}/dg,
  /hf_[A-Za-z0-9]{20,}/dg,
  /SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/dg,
  /eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/dg,
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

  /** `more`: patterns of the caller's own. */
  constructor(more: readonly RegExp[] = []) {
    const flagged = more.map(({ source, flags }) => new RegExp(source, `${flags.replaceAll(/[dgy]/g, '')}dg`))
    this.#patterns = [...secretPatterns, ...flagged]
  }

  /** A text without its secrets. */
  text(text: string): string {
    return this.#patterns.reduce(maskedBy, text)
  }

  /** A JSON value without its secrets: texts are masked, and whole where the name of their field says so. */
  value<T>(value: T): T {
    return this.#masked(value as Json, false) as T
  }

  #masked(value: Json, isSecret: boolean): Json {
    if (typeof value === 'string') return isSecret ? masked(value) : this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item: Json) => this.#masked(item, isSecret))
    return Object.fromEntries(
      // What a secret name holds as an object may be the schema of a field: only texts are secrets.
      Object.entries(value).map(([name, field]) => [name, this.#masked(field, isSecretName(name))]),
    )
  }
}

function isSecretName(name: string): boolean {
  return secretNames.has(name.toLowerCase().replaceAll(/[-_]/g, ''))
}

function maskedBy(text: string, pattern: RegExp): string {
  let result = ''
  let from = 0
  for (const { indices } of text.matchAll(pattern)) {
    const [start, end] = indices?.[1] ?? indices?.[0] ?? [0, 0]
    result += text.slice(from, start) + masked(text.slice(start, end))
    from = end
  }
  return result + text.slice(from)
}
