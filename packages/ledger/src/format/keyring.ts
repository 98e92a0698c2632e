import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import { option, type Schema } from '@tallystick/core/internal'

/** The key that encrypts the content about one subject. */
export interface SubjectKey {
  /** Names the key and reveals nothing about the subject: the ledger stores it in the clear. */
  readonly id: string
  /** 32 bytes. */
  readonly bytes: Uint8Array
}

/**
 * Keeps the keys of subjects, outside the ledger and its backups: destroying a subject's key erases the content about
 * the subject in every copy. Members may reject with a `TallystickError`; the ledger call that needs the key then
 * rejects with it.
 */
export interface Keyring {
  /** Returns the key of a subject; makes a new, durable one if the subject has none. */
  keyOf(subject: string): Promise<SubjectKey>
  /** Returns the key of this id; `undefined` if it was destroyed, or is not known here. */
  key(id: string): Promise<Uint8Array | undefined>
  /** Destroys the keys of a subject, for good. Returns their ids. */
  destroy(subject: string): Promise<readonly string[]>
}

/** Checks that a value can serve as a keyring. */
export const keyring: Schema = option.valueThat('a keyring, such as sqliteKeyring(path)', (value) => {
  const { keyOf, key, destroy } = Object(value) as Partial<Keyring>
  return [keyOf, key, destroy].every((member) => typeof member === 'function')
})

const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts texts with AES-256-GCM under one subject's key. The nonce is derived from the text and its place
 * (HMAC-SHA256, as in AES-SIV), so that sealing the same text at the same place again gives the same result: an append
 * whose acknowledgement was lost is recognised. Two different texts share a nonce only by a chance of 1 in 2^96.
 */
export class Sealer {
  readonly id: string
  readonly #sealing: Uint8Array
  readonly #naming: Uint8Array
  readonly #digesting: Uint8Array

  constructor({ id, bytes }: SubjectKey) {
    this.id = id
    this.#sealing = deriveKey(bytes, 'tallystick seal')
    this.#naming = deriveKey(bytes, 'tallystick nonce')
    this.#digesting = deriveKey(bytes, 'tallystick digest')
  }

  /** Nonce, sealed bytes and tag, in base64. `place` is bound to them: what was sealed elsewhere cannot be put here. */
  seal(text: string, place: string): string {
    const nonce = createHmac('sha256', this.#naming)
      .update(`${place.length} ${place}${text}`)
      .digest()
      .subarray(0, nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#sealing, nonce).setAAD(Buffer.from(place))
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
      'base64',
    )
  }

  /** Throws if the text was sealed elsewhere, with another key, or has changed. */
  open(sealed: string, place: string): string {
    const bytes = Buffer.from(sealed, 'base64')
    const end = bytes.length - tagBytes
    const decipher = createDecipheriv('aes-256-gcm', this.#sealing, bytes.subarray(0, nonceBytes))
      .setAAD(Buffer.from(place))
      .setAuthTag(bytes.subarray(end))
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, end)), decipher.final()]).toString()
  }

  /** Returns the name of a digest in the clear: without the key, a reader cannot confirm a guess by it. */
  name(digest: string): string {
    return createHmac('sha256', this.#digesting).update(digest).digest('hex')
  }
}

function deriveKey(key: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, new Uint8Array(), purpose, 32))
}
