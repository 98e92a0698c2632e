import { isRegExp } from 'node:util/types'
import {
  findKeys,
  option,
  type OptionalSchema,
  requireOptions,
  type TextSpan,
} from '@tallystick/core/internal'
import { type Json, parseToolCallId } from '@tallystick/core/vocabulary'
import { rules } from '@secretlint/secretlint-rule-preset-recommend'

/** Endings of names of secrets, in lower case and without separators. */
const endings: readonly string[] = [
  'password',
  'passwords',
  'passwd',
  'passphrase',
  'passcode',
  'passwordhash',
  'passwordconfirmation',
  'secret',
  'secrets',
  'secretkey',
  'privatekey',
  'signingkey',
  'encryptionkey',
  'masterkey',
  'authkey',
  'apikey',
  'apikeys',
  'accesskey',
  'accesskeyid',
  'accountkey',
  'subscriptionkey',
  'servicekey',
  'token',
  'credential',
  'credentials',
  'connectionstring',
  'authorization',
  'cookie',
]

/** Tokens that are places in a list. */
const placeTokens = /(?:page|next|previous|continuation|cursor|sync)token$/
/** Short words that name a secret only after another word: `PWD` alone is a folder. */
const shortWords: ReadonlySet<string> = new Set(['pwd', 'pass', 'pw'])
/** Keys of databases and of cryptography that are not secrets. */
const openKeys: ReadonlySet<string> = new Set([
  'PUBLIC',
  'PRIMARY',
  'FOREIGN',
  'PARTITION',
  'SORT',
  'IDEMPOTENCY',
])

/** Names of secrets: of fields, headers, parameters or variables of the environment. */
export function isSecretName(name: string): boolean {
  const fields = name.split(/[^A-Za-z0-9]/).filter((word) => word !== '')
  const joined = fields.join('').toLowerCase()
  let end = joined.length
  while (end > 0 && '0123456789'.includes(joined[end - 1] ?? '')) end--
  const letters = joined.slice(0, end)
  if (endings.some((ending) => letters.endsWith(ending))) return !placeTokens.test(letters)
  const last = fields.at(-1) ?? ''
  if (fields.length < 2) return false
  if (shortWords.has(last.toLowerCase())) return true
  // A variable of the environment, such as OPENAI_KEY.
  return last === 'KEY' && !fields.some((word) => openKeys.has(word))
}

/** Names that only secrets have: `token` and `secret` alone are words of plain sentences. */
export function isPlainlySecret(name: string): boolean {
  return isSecretName(name) && !/^(?:token|secrets?|credentials?)$/i.test(name)
}

/** A secret in a text, and whether it is a number of JSON, whose digits alone may be masked. */
interface NamedSecret extends TextSpan {
  readonly isNumber?: true
  /** Of a text between quotes: the backslashes before each quote, which say how deep it is nested in JSON texts. */
  readonly nested?: number
}

/** Names whose value is the rest of the line. */
const headerName = /^(?:(?:proxy-)?authorization|(?:set-)?cookie)$/i
/** A bare value after `name: ` may be a word of a sentence; passwords that are shorter are few. */
const bareLengthMin = 4

/**
 * The values of a text under the name of a secret: in JSON, also within a JSON text, in assignments, parameters,
 * settings and headers. Takes time in proportion to the length of the text: no text after a separator is read twice,
 * and a name ends at the separator before it.
 */
export function findNamedSecrets(text: string): readonly NamedSecret[] {
  const separator = /[:=]/g
  const secrets: NamedSecret[] = []
  for (let found = separator.exec(text); found; found = separator.exec(text)) {
    const name = nameBefore(text, found.index)
    if (!isSecretName(name.text)) continue
    const values = readValuesAfter(text, found.index, name).filter(({ start, end }) => start < end)
    secrets.push(...values)
    separator.lastIndex = Math.max(separator.lastIndex, values.at(-1)?.end ?? 0)
  }
  return secrets
}

interface Name {
  readonly text: string
  readonly quoted: boolean
  /** White space separates the name and the separator. */
  readonly apart: boolean
}

/** The name before a separator; empty if none is. */
function nameBefore(text: string, separator: number): Name {
  // The separator `:=`.
  const before = text[separator] === '=' && text[separator - 1] === ':' ? separator - 1 : separator
  const beforeSpace = findRunStart(text, before, isBlank)
  const quoted = isQuote(text[beforeSpace - 1])
  const end = quoted ? findRunStart(text, beforeSpace - 1, isBackslash) : beforeSpace
  const start = findRunStart(text, end, isNameCharacter)
  const name = text.slice(start, end)
  const known = !quoted && isBackslash(text[start - 1]) ? nameAfterBackslash(name) : name
  return { text: known, quoted, apart: beforeSpace < before }
}

/**
 * The name after a backslash. In a JSON text a line break is a backslash and a letter, which does not belong to the name;
 * in a path of Windows the letter is the name's first.
 */
function nameAfterBackslash(name: string): string {
  const rest = name.slice(1)
  return isSecretName(rest) || /^[bfnrt][A-Z]/.test(name) ? rest : name
}

function readValuesAfter(text: string, separator: number, name: Name): readonly NamedSecret[] {
  const after = text.startsWith('=>', separator) ? separator + 2 : separator + 1
  const start = findRunEnd(text, after, name.quoted ? isBlank : isSpace)
  if (name.quoted) return readJsonValues(text, start)
  const opening = findRunEnd(text, start, isBackslash)
  if (isQuote(text[opening])) return [readQuotedValue(text, start, opening)]
  const value = readBareValue(text, { separator, behind: after, start }, name)
  return value ? [value] : []
}

/** A text or a number of JSON, or those of a list and of lists within it, up to the first object. */
function readJsonValues(text: string, from: number): readonly NamedSecret[] {
  const values: NamedSecret[] = []
  let depth = 0
  let place = from
  do {
    const opening = findRunEnd(text, place, isBackslash)
    const value = isQuote(text[opening])
      ? readQuotedValue(text, place, opening)
      : readNumberValue(text, place)
    if (text[place] === '[') depth++
    if (text[place] === ']') depth--
    if (value) values.push(value)
    // After the quote that ends a text.
    if (value) place = value.isNumber ? value.end : value.end + 1 + opening - place
    else if (isBetweenItems(text[place] ?? '')) place++
    else return values
  } while (depth > 0)
  return values
}

function readBareValue(
  text: string,
  {
    separator,
    behind: after,
    start,
  }: { readonly separator: number; readonly behind: number; readonly start: number },
  name: Name,
): NamedSecret | undefined {
  const assigns = text[separator] === '='
  return assigns
    ? readAssignedValue(text, start, name.apart || start > after)
    : readLineValue(text, start, name, after)
}

/** A bare value after `=`. */
function readAssignedValue(text: string, start: number, apart: boolean): NamedSecret | undefined {
  const end = findRunEnd(text, start, isBare)
  // `token = read()` is code, and no secret.
  return apart && text.slice(start, end).includes('(') ? undefined : { start, end }
}

/** A bare value after `:`: the rest of a header's line, a word of a setting's. */
function readLineValue(text: string, start: number, name: Name, after: number): NamedSecret | undefined {
  if (headerName.test(name.text)) return { start, end: findRunEnd(text, start, isOfLine) }
  // Nothing is read to its end that may turn out to be no secret, or texts of many names would be read again and again.
  if (start === after || !isPlainlySecret(name.text)) return undefined
  const end = findRunEnd(text, start, isBare)
  return end - start >= bareLengthMin ? { start, end } : undefined
}

/**
 * The text between quotes; `opening` is the index of the first quote, which follows as many backslashes as it is
 * nested deep.
 */
function readQuotedValue(text: string, start: number, opening: number): NamedSecret {
  const nested = opening - start
  const quote = text[opening]
  let backslashes = 0
  for (let place = opening + 1; place < text.length; place++) {
    const character = text[place]
    if (character === '\\') {
      backslashes++
      continue
    }
    // Each level of nesting doubles backslashes: a quote of this level has those of its level alone, beside pairs.
    const closes = character === quote && backslashes % (2 * (nested + 1)) === nested
    if (closes) return { start: opening + 1, end: place - nested, nested }
    backslashes = 0
  }
  return { start: opening + 1, end: text.length, nested }
}

function readNumberValue(text: string, start: number): NamedSecret | undefined {
  const end = findRunEnd(text, start, (character) => /[-+.\dEe]/.test(character))
  const isNumber = end > start && Number.isFinite(Number(text.slice(start, end)))
  return isNumber ? { start, end, isNumber } : undefined
}

type Belongs = (character: string) => boolean

const isQuote = (character: string | undefined): boolean => character === '"' || character === "'"
const isBackslash = (character: string | undefined): boolean => character === '\\'
const isSpace: Belongs = (character) => character === ' ' || character === '\t'
const isBlank: Belongs = (character) => isSpace(character) || character === '\r' || character === '\n'
const isNameCharacter: Belongs = (character) => /[\w-]/.test(character)
/** Also the letters of `true`, `false` and `null`. */
const isBetweenItems: Belongs = (character) => /[[\],a-z\s]/.test(character)
const isOfLine: Belongs = (character) => !'\r\n"\'\\'.includes(character)
const isBare: Belongs = (character) => !' \t\r\n&;,"\'\\'.includes(character)

function findRunEnd(text: string, from: number, belongs: Belongs): number {
  let place = from
  while (place < text.length && belongs(text[place] ?? '')) place++
  return place
}

function findRunStart(text: string, to: number, belongs: Belongs): number {
  let place = to
  while (place > 0 && belongs(text[place - 1] ?? '')) place--
  return place
}

/** The part of a rule of the scanner that is used: each reports what it finds while it reads a text. */
interface ScanRule {
  readonly meta: { readonly id: string }
  create(context: object, options: object): { readonly file: (source: object) => unknown }
}

/**
 * Rules that are not used: one takes comments for orders to find less, and a text of a model must not hide a secret so; the
 * others take a whole address for a secret, though only its password is one.
 */
const leftOut = /(?:filter-comments|basicauth|database-connection-string)$/
/** Any shorter text holds no key of a service. */
const shortest = 16

let spans: TextSpan[] = []

/** The rules, made once: what they find goes into `spans`. */
const scanners = (rules as readonly unknown[] as readonly ScanRule[])
  .filter(({ meta }) => !leftOut.test(meta.id))
  .map((rule) =>
    rule.create(
      {
        sharedOptions: {},
        createTranslator: () => () => ({ message: '', messageId: '', data: {} }),
        ignore: () => {},
        report({ range: [start, end] }: { readonly range: readonly [number, number] }) {
          spans.push({ start, end })
        },
      },
      {},
    ),
  )

/**
 * Keys and tokens of well-known services in a text, by the rules of a scanner that others keep up to date: what they look
 * like changes more often than this package. In order, and none within another.
 */
function scanSecrets(text: string): readonly TextSpan[] {
  if (text.length < shortest) return []
  spans = []
  const source = { filePath: 'text', ext: '.txt', contentType: 'text', content: text, hasBOM: false }
  for (const { file } of scanners) file(source)
  const found: TextSpan[] = []
  for (const span of spans.sort((one, other) => one.start - other.start)) {
    const last = found.at(-1)
    if (last === undefined || span.start >= last.end) found.push(span)
    else found[found.length - 1] = { start: last.start, end: Math.max(last.end, span.end) }
  }
  return found
}

/** Patterns of a caller, which may be left out. */
export const ownSecretPatterns: OptionalSchema = option.maybe(
  option.listOf(option.valueThat('a regular expression', isRegExp)),
)

/** Further patterns of secrets. If a pattern has a group, only the match of the group is masked. */
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
function maskSecret(secret: string): string {
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
  /** A caller added patterns, which may match more than secrets. */
  readonly hasOwnPatterns: boolean

  /** `more`: patterns of the caller's own. */
  constructor(more: readonly RegExp[] = []) {
    const flagged = more.map(({ source, flags }) => new RegExp(source, `${flags.replaceAll(/[dgy]/g, '')}dg`))
    this.#patterns = [...secretPatterns, ...flagged]
    this.hasOwnPatterns = more.length > 0
  }

  /** A text without its secrets. */
  text(text: string): string {
    const named = maskAt(text, findNamedSecrets(text))
    const keyless = maskAt(named, findKeys(named))
    return this.#patterns.reduce(maskByPattern, maskAt(keyless, scanSecrets(keyless)))
  }

  /**
   * A JSON value without its secrets: texts are masked, and whole where the name of their field says so. The id of a tool
   * call, which the runtime made, is not a secret.
   */
  value<T>(value: T): T {
    return this.#masked(value as Json, false) as T
  }

  #masked(value: Json, isSecret: boolean): Json {
    if (typeof value === 'string') {
      if (isSecret) return maskSecret(value)
      return parseToolCallId(value) === undefined ? this.text(value) : value
    }
    if (typeof value === 'number' && isSecret) return Number(maskNumber(String(value)))
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item: Json) => this.#masked(item, isSecret))
    return Object.fromEntries(
      // An object under a secret name may be the schema of a field: only texts are secrets.
      Object.entries(value).map(([name, field]) => [name, this.#masked(field, isSecretName(name))]),
    )
  }
}

/**
 * A JSON value with every text masked that looks like a secret, as `exportRegression` masks them. `secrets` are patterns of further
 * ones. Throws a `ConfigurationError` for patterns that are none.
 */
export function maskSecrets<T>(value: T, secrets?: readonly RegExp[]): T {
  requireOptions('maskSecrets', ownSecretPatterns, secrets, 'secrets')
  return new SecretMask(secrets).value(value)
}

/** A run of backslashes with what it may escape, or one other character. */
const unit = /(\\+)(u[0-9a-fA-F]{4}|[nrtbf"])?|[^\\]/g

/**
 * The characters of a secret within quotes, masked so that its escapes stay escapes of as many characters: read as
 * JSON, it is what `masked` makes of the secret itself. `nested` is the number of backslashes before a quote that is
 * not escaped.
 */
function maskEscaped(secret: string, nested: number): string {
  let written = 0
  const next = (): string => placeholder[written++] ?? '*'
  const plain = (text: string): string =>
    text
      .split('')
      .map((character) => (kept.test(character) ? character : next()))
      .join('')
  return secret.replaceAll(unit, (whole, backslashes: string = '', escaped: string = '') => {
    // An even number of backslashes escapes nothing after it.
    const isEscape = escaped !== '' && Math.floor(backslashes.length / (nested + 1)) % 2 === 1
    if (!isEscape) return backslashes + plain(whole.slice(backslashes.length))
    const code = escaped.startsWith('u') ? Number.parseInt(escaped.slice(1), 16) : undefined
    if (code === undefined || kept.test(String.fromCharCode(code))) return whole
    return `${backslashes}u${next().charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** A number of as many digits. */
function maskNumber(digits: string): string {
  const exponent = digits.search(/e/i)
  const end = exponent === -1 ? digits.length : exponent
  return digits.slice(0, end).replaceAll(/\d/g, '1') + digits.slice(end)
}

function maskAt(text: string, secrets: readonly NamedSecret[]): string {
  let result = ''
  let from = 0
  for (const { start, end, isNumber, nested = 0 } of secrets) {
    const secret = text.slice(start, end)
    result += text.slice(from, start) + (isNumber ? maskNumber(secret) : maskEscaped(secret, nested))
    from = end
  }
  return result + text.slice(from)
}

function maskByPattern(text: string, pattern: RegExp): string {
  const spans = Array.from(text.matchAll(pattern), ({ indices }) => {
    const [start, end] = indices?.[1] ?? indices?.[0] ?? [0, 0]
    return { start, end }
  })
  return maskAt(text, spans)
}
