import { canonicalJson, digestOf, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { withoutRunIds } from './replay-order.ts'
import { bodyWithoutSecrets, secretsIn } from './secrets.ts'

/** A request as a recording holds it: no header, no query and no secret is in it. */
export interface RecordedRequest {
  readonly method: string
  /** Without user, query and fragment. */
  readonly url: string
  /** JSON if the body is JSON, else the text; `null` if there is no body, or one that cannot be read twice. */
  readonly body: Json
}

/** A piece of a body as it came: text where its bytes are UTF-8, else base64. */
export type RecordedPiece = { readonly text: string } | { readonly base64: string }

/** How an exchange ended: normally; with a broken connection; or abandoned by the caller. */
export type ExchangeEnding =
  | { readonly type: 'end' }
  | { readonly type: 'broken'; readonly message: string; readonly code?: string }
  | { readonly type: 'abandoned' }

/** One request, and what came of it. `status` is absent where no answer began. */
export interface Exchange {
  readonly request: RecordedRequest
  readonly status?: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly RecordedPiece[]
  readonly ending: ExchangeEnding
}

/** What a request asks, and the secrets in its headers. The caller's own request is left unread. */
export async function requestOf(
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<{ readonly request: RecordedRequest; readonly secrets: readonly string[] }> {
  const body = init?.body
  const readable = body == null || typeof body === 'string' || body instanceof Uint8Array
  const { signal: _, ...rest } = init ?? {}
  const given = input instanceof Request ? input.clone() : input
  const asked = new Request(given, readable ? rest : { ...rest, body: null })
  const { origin, pathname } = new URL(asked.url)
  const secrets = secretsIn(asked.headers)
  const text = await asked.text()
  return {
    request: {
      method: asked.method,
      url: `${origin}${pathname}`,
      body: text === '' ? null : bodyWithoutSecrets(jsonOrText(text), secrets),
    },
    secrets,
  }
}

function jsonOrText(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

/** What two requests share that are to get the same answer. The host is left out: recordings are played anywhere. */
export function exchangeKey({ method, url, body }: RecordedRequest): string {
  return digestOf(`${method} ${new URL(url).pathname} ${withoutRunIds(canonicalJson(body))}`)
}

/** What is known of an exchange, line by line: its request and how its answer begins, each piece, and its ending. */
export type ExchangeLine =
  | Pick<Exchange, 'request' | 'headers' | 'status'>
  | RecordedPiece
  | { readonly ending: ExchangeEnding }

/**
 * The exchanges that these lines tell of, in the order in which they began. One without an ending was still open when
 * the recording stopped: as if it had been given up. `undefined` where a line belongs to none.
 */
export function exchangesOf(lines: readonly JsonObject[]): readonly Exchange[] | undefined {
  const exchanges = new Map<number, Exchange & { readonly pieces: RecordedPiece[] }>()
  for (const line of lines) {
    const number = numberAt(line, 'number') ?? 0
    const before = exchanges.get(number)
    const ending = objectAt(line, 'ending')
    const begun = before === undefined ? beginningOf(line) : undefined
    if (begun !== undefined) exchanges.set(number, begun)
    else if (before === undefined) return undefined
    else if (textAt(line, 'text') !== undefined || textAt(line, 'base64') !== undefined) {
      before.pieces.push(line as unknown as RecordedPiece)
    } else if (textAt(ending, 'type') === undefined) return undefined
    else exchanges.set(number, { ...before, ending: ending as unknown as ExchangeEnding })
  }
  return [...exchanges].toSorted(([one], [other]) => one - other).map(([, exchange]) => exchange)
}

function beginningOf(line: JsonObject): (Exchange & { readonly pieces: RecordedPiece[] }) | undefined {
  const request = objectAt(line, 'request')
  if (request === undefined || !URL.canParse(textAt(request, 'url') ?? '')) return undefined
  const status = numberAt(line, 'status')
  return {
    request: request as unknown as RecordedRequest,
    ...(status !== undefined && { status }),
    headers: (objectAt(line, 'headers') ?? {}) as Readonly<Record<string, string>>,
    pieces: [],
    ending: { type: 'abandoned' },
  }
}

/** Bytes as a recording holds them. */
export function pieceOf(bytes: Uint8Array): RecordedPiece {
  try {
    // A mark of the byte order is a part of the bytes.
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { base64: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')) }
  }
}

/** The bytes of a piece. */
export function bytesOf(piece: RecordedPiece): Uint8Array {
  if ('text' in piece) return new TextEncoder().encode(piece.text)
  return Uint8Array.from(atob(piece.base64), (character) => character.charCodeAt(0))
}
