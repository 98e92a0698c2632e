const entities: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['quot', '"'],
  ['apos', "'"],
  ['lt', '<'],
  ['gt', '>'],
])

/** Characters that the longest escape of one character takes: `&#x00002f;`. */
const maxEscapeLength = 10

const escapes: Readonly<Record<string, RegExp>> = {
  '%': /%(?<hex>[0-9a-f]{2})/iy,
  '\\': /\\(?:u(?<unicode>[0-9a-f]{4})|x(?<hex>[0-9a-f]{2})|(?<plain>["'\\/]))/iy,
  '&': /&(?:#x(?<hex>[0-9a-f]{1,6})|#(?<decimal>\d{1,7})|(?<entity>amp|quot|apos|lt|gt));/iy,
}

/** A line break within a value that was too long for a line, as it is or as JSON writes it. */
const lineBreak = /(?:\r?\n|(?:\\r)?\\n)[ \t]?/y

/**
 * Returns the place after `words` in a text, if the text has them at `from`; else `undefined`. `words` are in small
 * letters. Each of their characters may be written as it is, in capitals, or escaped as in URLs, JSON, JavaScript or
 * HTML, and lines may break between two of them. Every reading is tried: a `%` or a `\` before the words hides none.
 */
export function findEndOfWords(words: string, text: string, from: number): number | undefined {
  let places: readonly number[] = [from]
  for (let index = 0; index < words.length && places.length > 0; index++) {
    const word = words[index] ?? ''
    const next = places.flatMap((place) => {
      const behind = findEndsOfCharacter(word, text, place)
      return index === 0
        ? behind
        : [...behind, ...findEndsOfCharacter(word, text, skipLineBreak(text, place))]
    })
    places = next.length > 1 ? [...new Set(next)] : next
  }
  return places.length === 0 ? undefined : Math.max(...places)
}

/** Returns whether a character can be at an index: cheap, and never wrong when `false`. */
export function mayBeAt(character: string, text: string, place: number): boolean {
  const found = text[place] ?? ''
  return toSmallLetters(found) === character || found in escapes
}

/** Letters of ASCII in small letters; all others stay, so that no character moves. */
export function toSmallLetters(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}

function findEndsOfCharacter(character: string, text: string, place: number): readonly number[] {
  const found = text[place]
  if (found === undefined) return []
  const ends = toSmallLetters(found) === character ? [place + 1] : []
  const pattern = escapes[found]
  if (pattern === undefined) return ends
  pattern.lastIndex = place
  const match = pattern.exec(text)
  const escaped = match?.groups && toSmallLetters(unescape(match.groups))
  return match && escaped === character ? [...ends, place + match[0].length] : ends
}

function skipLineBreak(text: string, place: number): number {
  const found = text[place]
  if (found !== '\r' && found !== '\n' && found !== '\\') return text.length
  lineBreak.lastIndex = place
  return lineBreak.test(text) ? lineBreak.lastIndex : text.length
}

function unescape({ hex, unicode, decimal, plain, entity }: Readonly<Record<string, string>>): string {
  if (plain !== undefined) return plain
  if (entity !== undefined) return entities.get(entity.toLowerCase()) ?? ''
  const code = decimal === undefined ? Number.parseInt(unicode ?? hex ?? '', 16) : Number(decimal)
  return code <= 0xffff ? String.fromCharCode(code) : ''
}

/** Characters that a secret has at least. A shorter one is found in texts that have nothing to do with it. */
export const secretLengthMin = 8

/** Secrets that are known word for word, such as the keys that a program sends itself. */
export interface KnownSecrets {
  /**
   * The ranges of a text that hold one of them, in order, none overlapping another: as it is, in any case, in Base64
   * (also within a longer value) and in hexadecimal, each also escaped as in URLs, JSON, JavaScript or HTML, and broken
   * into lines. Not found: what is compressed, encrypted, spelt backwards, or encoded twice over.
   */
  spansIn(text: string): readonly TextSpan[]
  /** A text with other words in place of each. */
  struckFrom(text: string, instead: (secret: string) => string): string
  /** Characters that the longest of them takes in any of these forms. */
  readonly maxFormLength: number
}

/** Gets ready to find these secrets. Those that are shorter than `secretLengthMin` are left out. */
export function createKnownSecrets(secrets: Iterable<string>): KnownSecrets {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= secretLengthMin)
  const forms = [...new Set(known.flatMap(listForms).map(toSmallLetters))]
  const spansIn = (text: string): readonly TextSpan[] =>
    mergeSpans(forms.flatMap((form) => findPlaces(form, text)))
  return {
    spansIn,
    struckFrom: (text, instead) => replaceSpans(text, spansIn(text), instead),
    maxFormLength: maxEscapeLength * Math.max(0, ...forms.map(({ length }) => length)),
  }
}

function findPlaces(form: string, text: string): readonly TextSpan[] {
  const [first = ''] = form
  const spans: TextSpan[] = []
  for (let start = 0; start < text.length;) {
    const end = mayBeAt(first, text, start) ? findEndOfWords(form, text, start) : undefined
    if (end !== undefined) spans.push({ start, end })
    start = end ?? start + 1
  }
  return spans
}

function mergeSpans(spans: readonly TextSpan[]): readonly TextSpan[] {
  const result: TextSpan[] = []
  for (const span of spans.toSorted((one, other) => one.start - other.start)) {
    const last = result.at(-1)
    if (last === undefined || span.start >= last.end) result.push(span)
    else if (span.end > last.end) result[result.length - 1] = { start: last.start, end: span.end }
  }
  return result
}

function listForms(secret: string): readonly string[] {
  const bytes = encodeUtf8(secret)
  const asBytes = String.fromCharCode(...bytes)
  const hexadecimal = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const encoded = [0, 1, 2].map((offset) => encodeBase64Within(bytes, offset))
  const forUrls = encoded.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [secret, asBytes, hexadecimal, ...encoded, ...forUrls]
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The characters of Base64 that bytes alone decide, wherever they begin within a group of three. */
function encodeBase64Within(bytes: readonly number[], offset: number): string {
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  // Bits that share a character with the byte before.
  const shared = (6 - ((offset * 8) % 6)) % 6
  let text = ''
  for (let bit = shared; bit + 6 <= bits.length; bit += 6) {
    text += alphabet[Number.parseInt(bits.slice(bit, bit + 6), 2)] ?? ''
  }
  return text
}

function encodeUtf8(text: string): readonly number[] {
  return [...encodeURIComponent(text.toWellFormed()).matchAll(/%([0-9A-F]{2})|[^%]/g)].map(
    ([character, hex]) => (hex === undefined ? character.charCodeAt(0) : Number.parseInt(hex, 16)),
  )
}

/** A place in a text: from `start` up to, not including, `end`. */
export interface TextSpan {
  readonly start: number
  readonly end: number
}

/**
 * The keys of services, by how they begin and how many characters come after that at least. Not as `{12,}`: for each character
 * that this takes, the engine keeps a way back, and millions of them overflow its stack.
 */
const keyShapes = [
  // OpenAI, Anthropic, OpenRouter, DeepSeek, Stripe.
  /[srp]k-[\w-]{12}[\w-]*/,
  /(?:sk_live|sk_test|pk_live|pk_test|rk_live)_[\w-]{10}[\w-]*/,
  // Groq, xAI, Google, Perplexity, Replicate, Together, Fireworks, Cerebras, NVIDIA, Hugging Face.
  /(?:gsk_|xai-|pplx-|tgp_v1_|csk-|nvapi-)[\w-]{16}[\w-]*/,
  /AIza[\w-]{30}[\w-]*/,
  /ya29\.[\w.-]{16}[\w.-]*/,
  /(?:r8_|fw_|hf_)[\w-]{20}[\w-]*/,
  // GitHub, GitLab, npm, Slack, AWS, SendGrid, DigitalOcean, Shopify, PyPI.
  /(?:gh[pousr]_|github_pat_)[\w-]{20}[\w-]*/,
  /glpat-[\w-]{16}[\w-]*/,
  /npm_[\w-]{30}[\w-]*/,
  /xox[abeprs]-[\w-]{10}[\w-]*/,
  /A[KS]IA[\w-]{16}[\w-]*/,
  /SG\.[\w.-]{30}[\w.-]*/,
  /(?:dop_v1_|shpat_|pypi-)[\w-]{20}[\w-]*/,
]

/**
 * A key, which does not begin as the end of a word (as in `task-`), unless the letter before is an escaped line break; or what
 * begins as a JSON web token, of which the first part is taken at once: else `eyJeyJ…` would be read again and again.
 */
const keyOrToken = new RegExp(
  `(?<!(?<!\\\\)[a-z])(?:${keyShapes.map(({ source }) => source).join('|')})|(?<first>eyJ[\\w-]*)(?:\\.(?<second>[\\w-]*)\\.[\\w-]*)?`,
  'g',
)

/** Characters of the first two parts of a JSON web token at least. */
const webTokenPartMin = 8

/**
 * The ranges of keys in a text, recognised by how keys of known services begin; JSON web tokens among them. In order,
 * none within another. A key of a service that marks its keys by nothing is not found. Takes time in proportion to the
 * length of the text, whatever it holds.
 */
export function findKeys(text: string): readonly TextSpan[] {
  const spans: TextSpan[] = []
  keyOrToken.lastIndex = 0
  for (let match = keyOrToken.exec(text); match !== null; match = keyOrToken.exec(text)) {
    const { first, second = '' } = match.groups ?? {}
    if (first === undefined || Math.min(first.length, second.length) >= webTokenPartMin)
      spans.push({ start: match.index, end: keyOrToken.lastIndex })
    else keyOrToken.lastIndex = match.index + first.length
  }
  return spans
}

/** A text with other words in place of each key in it. */
export function withoutKeys(text: string, instead: (key: string) => string): string {
  return replaceSpans(text, findKeys(text), instead)
}

function replaceSpans(text: string, spans: readonly TextSpan[], instead: (found: string) => string): string {
  let result = ''
  let from = 0
  for (const { start, end } of spans) {
    result += text.slice(from, start) + instead(text.slice(start, end))
    from = end
  }
  return result + text.slice(from)
}
