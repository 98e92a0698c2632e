import { accessSync, appendFileSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import { toCanonicalJson, computeDigest, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { getNumber, getObject, parseJson, getText } from '../shared/json.ts'
import { struckOut, withoutKeyShapes } from '../shared/secrets.ts'

/** A recording holds exchanges over HTTP with their bytes, or calls of a model with their signals. */
export type RecordingKind = 'exchanges' | 'calls'

const version = 1

/** Writes a recording as JSON Lines. What was written is in the file, even if the process dies. */
export class RecordingWriter {
  readonly #file: string
  readonly #kind: RecordingKind
  #entries = 0
  #begun = false

  /** Throws `ConfigurationError` if the file cannot be written. */
  constructor(file: string, kind: RecordingKind) {
    this.#file = file
    this.#kind = kind
    try {
      accessSync(dirname(file), constants.W_OK)
    } catch (cause) {
      throw new ConfigurationError(
        `The folder of the recording ${file} does not exist, or cannot be written to. Create the folder first.`,
        { cause },
      )
    }
  }

  /** The number of the next exchange or call, from 1: several may be open at once, so each line names its own. */
  next(): number {
    return ++this.#entries
  }

  /** The first line replaces an earlier recording. */
  write(line: JsonObject): void {
    const text = `${JSON.stringify(line)}\n`
    if (this.#begun) return appendFileSync(this.#file, text)
    writeFileSync(this.#file, `${JSON.stringify({ recording: this.#kind, version })}\n${text}`)
    this.#begun = true
  }
}

/**
 * Reads the lines of a recording after the first one, which says what it is.
 *
 * Throws `ConfigurationError` if the file is missing, is not a recording of this kind, or is damaged.
 */
export function readRecording(file: string, kind: RecordingKind): readonly JsonObject[] {
  const [header, ...lines] = readLines(file).map((line, place) => {
    const value = parseJson(line)
    if (isJsonObject(value)) return value
    throw new ConfigurationError(
      `Line ${place + 1} of the recording ${file} is not a JSON object, so the recording is damaged. Record it again.`,
    )
  })
  const found = getText(header, 'recording')
  const foundVersion = getNumber(header, 'version')
  if (found !== kind || foundVersion !== version) {
    const other = found === undefined ? 'no recording' : `a recording of ${found}, version ${foundVersion}`
    throw new ConfigurationError(
      `${file} is ${other}, so it cannot be played as one of ${kind}, version ${version}. Record it again, or play it with what wrote it.`,
    )
  }
  return lines
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '')
  } catch (cause) {
    throw new ConfigurationError(`The recording ${file} cannot be read. Record it first.`, { cause })
  }
}

/** A request finds its recorded answer by its content, or by its turn. */
export type Matching = 'request' | 'order'

/** Returns the recorded entries, each once: by key, those of one key in order; or all in order. */
export class ReplayOrder<Entry> {
  readonly #waiting: { readonly key: string; readonly entry: Entry }[]
  readonly #matching: Matching

  constructor(entries: readonly { readonly key: string; readonly entry: Entry }[], matching: Matching) {
    this.#waiting = [...entries]
    this.#matching = matching
  }

  /** Takes the answer to a request of this key; `undefined` if none is left. */
  take(key: string): Entry | undefined {
    const place = this.#matching === 'order' ? 0 : this.#waiting.findIndex((one) => one.key === key)
    return place < 0 ? undefined : this.#waiting.splice(place, 1)[0]?.entry
  }

  /** The entries that are left. */
  get left(): readonly Entry[] {
    return this.#waiting.map(({ entry }) => entry)
  }
}

/**
 * Removes the run from ids of tool calls: a new run makes the same calls under ids of its own, and has to find the same
 * answers.
 */
export function withoutRunIds(text: string): string {
  return text.replaceAll(/\bcall_[0-9a-f]{32}_(?=\d+_\d+_\d+)/g, 'call_run_')
}

const secretHeaders = /^(proxy-)?authorization$|cookie|key|token|secret/i
const secretFields =
  /^(authorization|authorization_token|(x-)?api[-_]?key|password|(client_)?secret|(access|refresh)_token)$/i

// Servers without keys are given a shorter word, such as "ollama", which may be in any text.
const secretLengthMin = 16

/** Lists the secrets in a request's headers: whole values, and their pieces. */
function listSecrets(headers: Headers): readonly string[] {
  const values = [...headers].filter(([name]) => secretHeaders.test(name)).map(([, value]) => value)
  const pieces = values.flatMap((value) => [value, ...value.split(/[\s;,=]+/)])
  return [...new Set(pieces)]
    .filter((piece) => piece.length >= secretLengthMin)
    .sort((one, other) => other.length - one.length)
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutKeyShapes(secrets.reduce((rest, secret) => rest.replaceAll(secret, struckOut), text))
}

/** Strikes out these secrets, and texts whose name says that they are one. */
function omitSecrets(value: Json, secrets: readonly string[]): Json {
  if (typeof value === 'string') return withoutSecrets(value, secrets)
  if (Array.isArray(value)) return value.map((item: Json) => omitSecrets(item, secrets))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [
      key,
      secretFields.test(key) && typeof field === 'string' ? struckOut : omitSecrets(field, secrets),
    ]),
  )
}

/**
 * Passes pieces of bytes on without secrets, which may cross their borders. Each piece goes on at once, unless a secret may
 * begin at its end: then it waits for the next. Pieces that share a secret become one.
 */
export class SecretFilter {
  readonly #secrets: readonly string[]
  readonly #handOn: (bytes: Uint8Array) => void
  // One character for each byte: secrets come from headers, which hold no others.
  #held: string[] = []

  constructor(secrets: readonly string[], handOn: (bytes: Uint8Array) => void) {
    this.#secrets = secrets
    this.#handOn = handOn
  }

  push(bytes: Uint8Array): void {
    this.#held.push(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    const text = this.#held.join('')
    const clean = this.#secrets.reduce((rest, secret) => rest.replaceAll(secret, struckOut), text)
    if (clean !== text) this.#held = [clean]
    const mayBegin = (secret: string): boolean =>
      Array.from({ length: secret.length - 1 }, (_, at) => secret.slice(0, at + 1)).some((part) =>
        clean.endsWith(part),
      )
    if (!this.#secrets.some(mayBegin)) this.flush()
  }

  /** Passes on what was held back. */
  flush(): void {
    for (const piece of this.#held.splice(0))
      this.#handOn(Uint8Array.from(piece, (character) => character.charCodeAt(0)))
  }
}

/** A recorded request, without headers, query and secrets. */
export interface RecordedRequest {
  readonly method: string
  /** Without user, query and fragment. */
  readonly url: string
  /** JSON if the body is JSON, else the text; `null` if there is no body, or one that cannot be read twice. */
  readonly body: Json
}

/** A piece of a body as it came: text if its bytes are UTF-8, else base64. */
export type RecordedPiece = { readonly text: string } | { readonly base64: string }

/** How an exchange ended: normally; with a broken connection; or abandoned by the caller. */
export type ExchangeEnding =
  | { readonly type: 'end' }
  | { readonly type: 'broken'; readonly message: string; readonly code?: string }
  | { readonly type: 'abandoned' }

/** One request and its answer. `status` is absent if no answer began. */
export interface Exchange {
  readonly request: RecordedRequest
  readonly status?: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly RecordedPiece[]
  readonly ending: ExchangeEnding
}

/** Describes a request, and lists the secrets in its headers. The caller's own request stays unread. */
export async function describeRequest(
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<{ readonly request: RecordedRequest; readonly secrets: readonly string[] }> {
  const body = init?.body
  const readable = body == null || typeof body === 'string' || body instanceof Uint8Array
  const { signal: _, ...rest } = init ?? {}
  const given = input instanceof Request ? input.clone() : input
  const asked = new Request(given, readable ? rest : { ...rest, body: null })
  const { origin, pathname } = new URL(asked.url)
  const secrets = listSecrets(asked.headers)
  const text = await asked.text()
  return {
    request: {
      method: asked.method,
      url: `${origin}${pathname}`,
      body: text === '' ? null : omitSecrets((parseJson(text) as Json | undefined) ?? text, secrets),
    },
    secrets,
  }
}

/** Equal for requests that get the same answer. The host does not count: recordings are played anywhere. */
export function computeExchangeKey({ method, url, body }: RecordedRequest): string {
  return computeDigest(`${method} ${new URL(url).pathname} ${withoutRunIds(toCanonicalJson(body))}`)
}

/** A line of an exchange: its request and the beginning of its answer, a piece, or its ending. */
export type ExchangeLine =
  | Pick<Exchange, 'request' | 'headers' | 'status'>
  | RecordedPiece
  | { readonly ending: ExchangeEnding }

/**
 * Reads the exchanges of these lines, in the order in which they began. One without an ending was still open when the
 * recording stopped, as if it had been given up. Returns `undefined` if a line belongs to none.
 */
export function readExchanges(lines: readonly JsonObject[]): readonly Exchange[] | undefined {
  const exchanges = new Map<number, Exchange & { readonly pieces: RecordedPiece[] }>()
  for (const line of lines) {
    const number = getNumber(line, 'number') ?? 0
    const before = exchanges.get(number)
    const ending = getObject(line, 'ending')
    const begun = before === undefined ? readBeginning(line) : undefined
    if (begun !== undefined) exchanges.set(number, begun)
    else if (before === undefined) return undefined
    else if (getText(line, 'text') !== undefined || getText(line, 'base64') !== undefined) {
      before.pieces.push(line as unknown as RecordedPiece)
    } else if (getText(ending, 'type') === undefined) return undefined
    else exchanges.set(number, { ...before, ending: ending as unknown as ExchangeEnding })
  }
  return [...exchanges].toSorted(([one], [other]) => one - other).map(([, exchange]) => exchange)
}

function readBeginning(line: JsonObject): (Exchange & { readonly pieces: RecordedPiece[] }) | undefined {
  const request = getObject(line, 'request')
  if (request === undefined || !URL.canParse(getText(request, 'url') ?? '')) return undefined
  const status = getNumber(line, 'status')
  return {
    request: request as unknown as RecordedRequest,
    ...(status !== undefined && { status }),
    headers: (getObject(line, 'headers') ?? {}) as Readonly<Record<string, string>>,
    pieces: [],
    ending: { type: 'abandoned' },
  }
}

export function toPiece(bytes: Uint8Array): RecordedPiece {
  try {
    // A mark of the byte order is a part of the bytes.
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')) }
  }
}

export function toBytes(piece: RecordedPiece): Uint8Array {
  if ('text' in piece) return new TextEncoder().encode(piece.text)
  return Uint8Array.from(atob(piece.base64), (character) => character.charCodeAt(0))
}
