import { ProviderError } from '@tallystick/core'
import { createKnownSecrets, secretLengthMin, withoutKeys } from '@tallystick/core/internal'

/** Replaces a secret. */
export const struckOut = '[struck out]'

/** Strikes out what looks like a key. A prefix such as `sk-`, which says whose key it was, stays. */
export function withoutKeyShapes(text: string): string {
  return withoutKeys(text, (key) => `${/^[a-z]{1,5}[-_]/i.exec(key)?.[0] ?? ''}${struckOut}`)
}

/** As many characters of a secret tell too much if a text was cut within it. */
const cutLengthMin = 4
/** Names of options, fields and parameters that hold a secret. */
export const secretName: RegExp =
  /authorization|api[-_]?key|subscription[-_]?key|token|secret|password|cookie|credential/i
/** Headers that every call carries, and that say nothing of its sender. */
const openHeader =
  /^(?:accept|content-|user-agent|host|connection|x-stainless-|anthropic-(?:version|beta|dangerous)|openai-beta)/i

/**
 * The keys and header values that an adapter sends. It strikes them out of failures, since servers and gateways repeat them
 * in their errors.
 */
export class OwnSecrets {
  readonly #noted = new Set<string>()

  /** Starts with the secrets in `options`, which may hold a client. */
  constructor(options: unknown) {
    this.note(options)
  }

  /** Returns a `fetch` that notes what each request carries, also keys that a client found in the environment. */
  noting(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
    return (input, init) => {
      const request = input instanceof Request ? input : undefined
      this.#noteHeaders(new Headers(init?.headers ?? request?.headers))
      this.#noteAddress(input instanceof Request ? input.url : input.toString())
      return fetch(input, init)
    }
  }

  /** Notes every text in these options whose name says that it is a secret, and all headers. */
  note(options: unknown, seen: Set<object> = new Set()): void {
    // The parts of a client hold the client.
    if (typeof options !== 'object' || options === null || seen.has(options)) return
    seen.add(options)
    for (const [name, value] of Object.entries(options)) {
      if (typeof value === 'string') {
        if (secretName.test(name)) this.#add(value)
        if (/url$/i.test(name)) this.#noteAddress(value)
      } else if (/headers$/i.test(name)) this.#noteHeaders(value)
      else this.note(value, seen)
    }
  }

  /** Strikes them out of a `ProviderError`: its message and the id of its request. */
  strikeFrom(error: unknown): unknown {
    if (!(error instanceof ProviderError)) return error
    const known = createKnownSecrets(this.#noted)
    const strike = (text: string): string => known.struckFrom(text, () => struckOut)
    const { requestId, ...failure } = error.toFailure()
    const message = withoutCutSecret(strike(failure.message), this.#noted)
    const struck = { ...failure, message, ...(requestId !== undefined && { requestId: strike(requestId) }) }
    const isSame = message === failure.message && struck.requestId === requestId
    return isSame ? error : new ProviderError(struck, { cause: error.cause })
  }

  #add(value: string): void {
    // The text after a scheme, such as `Bearer`, and what a cookie or a list holds.
    for (const piece of [value, ...value.split(/[\s;,=]/), ...readBasicParts(value)]) this.#noted.add(piece)
  }

  /** Notes the password of an address, and parameters that are secrets. */
  #noteAddress(address: string): void {
    const url = URL.parse(address)
    if (url === null) return
    if (url.password !== '') this.#add(decode(url.password))
    for (const [name, value] of url.searchParams) {
      if (secretName.test(name) || name === 'key') this.#add(value)
    }
  }

  #noteHeaders(headers: unknown): void {
    if (typeof headers !== 'object' || headers === null) return
    for (const [name, value] of headers instanceof Headers ? headers : Object.entries(headers)) {
      if (typeof value === 'string' && !openHeader.test(name)) this.#add(value)
    }
  }
}

/** The name and password of a Basic scheme. */
function readBasicParts(value: string): readonly string[] {
  const token = /^basic (\S+)$/i.exec(value)?.[1]
  if (token === undefined) return []
  try {
    const basic = atob(token)
    return [basic, basic.slice(basic.indexOf(':') + 1)]
  } catch {
    return []
  }
}

/** Failure texts are cut to a length and end in `…`: also there no beginning of a secret is left. */
function withoutCutSecret(text: string, secrets: ReadonlySet<string>): string {
  return text
    .split('…')
    .map((piece, index, pieces) => (index === pieces.length - 1 ? piece : withoutBeginning(piece, secrets)))
    .join('…')
}

function withoutBeginning(text: string, secrets: ReadonlySet<string>): string {
  const lower = text.toLowerCase()
  for (const secret of secrets) {
    if (secret.length < secretLengthMin) continue
    for (let length = secret.length - 1; length >= cutLengthMin; length--) {
      if (lower.endsWith(secret.slice(0, length).toLowerCase())) return text.slice(0, -length) + struckOut
    }
  }
  return text
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
