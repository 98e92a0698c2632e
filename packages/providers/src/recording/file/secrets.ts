import { isJsonObject } from '@tallystick/core/kit'
import type { Json } from '@tallystick/core/vocabulary'
import { struckOut, withoutKeyShapes } from '../../shared/secrets/struck-keys.ts'

const secretHeaders = /^(proxy-)?authorization$|cookie|key|token|secret/i
const secretFields =
  /^(authorization|authorization_token|(x-)?api[-_]?key|password|(client_)?secret|(access|refresh)_token)$/i

// A shorter one is a word that servers without keys are given, such as "ollama", and may be in any text.
const secretLengthMin = 16

/** The secrets that a request's headers hold: whole values, and what they are made of. */
export function secretsIn(headers: Headers): readonly string[] {
  const values = [...headers].filter(([name]) => secretHeaders.test(name)).map(([, value]) => value)
  const pieces = values.flatMap((value) => [value, ...value.split(/[\s;,=]+/)])
  return [...new Set(pieces)]
    .filter((piece) => piece.length >= secretLengthMin)
    .sort((one, other) => other.length - one.length)
}

/** A text without these secrets, and without what looks like a key. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutKeyShapes(secrets.reduce((rest, secret) => rest.replaceAll(secret, struckOut), text))
}

/** A body without secrets: texts under a name that says that they are one, and these. */
export function bodyWithoutSecrets(value: Json, secrets: readonly string[]): Json {
  if (typeof value === 'string') return withoutSecrets(value, secrets)
  if (Array.isArray(value)) return value.map((item: Json) => bodyWithoutSecrets(item, secrets))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [
      key,
      secretFields.test(key) && typeof field === 'string' ? struckOut : bodyWithoutSecrets(field, secrets),
    ]),
  )
}

/** Takes pieces of bytes and hands them on as they came, but for secrets, which may cross their borders. */
export interface SecretFilter {
  push(bytes: Uint8Array): void
  /** Hands on what was held back. */
  flush(): void
}

/**
 * Hands on each piece at once, unless a secret may have begun at its end: such a one waits for the next. Pieces that share
 * a secret become one.
 */
export function withoutSecretsAcross(
  secrets: readonly string[],
  handOn: (bytes: Uint8Array) => void,
): SecretFilter {
  // A character a byte: secrets come out of headers, which hold no others.
  let held: string[] = []
  const flush = (): void => {
    for (const piece of held.splice(0)) handOn(Uint8Array.from(piece, (character) => character.charCodeAt(0)))
  }
  return {
    push(bytes) {
      held.push(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
      const text = held.join('')
      if (secrets.some((secret) => text.includes(secret))) {
        held = [secrets.reduce((rest, secret) => rest.replaceAll(secret, struckOut), text)]
      }
      const end = held.join('')
      if (!secrets.some((secret) => mayBegin(secret, end))) flush()
    },
    flush,
  }
}

/** Whether a text ends with the beginning of a secret. */
function mayBegin(secret: string, text: string): boolean {
  for (let length = Math.min(secret.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(secret.slice(0, length))) return true
  }
  return false
}
