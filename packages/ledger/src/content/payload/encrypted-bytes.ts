import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'
import type { SubjectKey } from './keyring.ts'

const nonceBytes = 12
const tagBytes = 16

/**
 * Encrypts bytes with AES-256-GCM under one subject's key. The nonce is derived from the bytes and their place
 * (HMAC-SHA256, as in AES-SIV), so encrypting the same bytes at the same place again gives the same result: an append
 * whose acknowledgement was lost is recognised, and a large content is stored once. Two different contents share a
 * nonce only by a chance of 1 in 2^96.
 */
export class Sealer {
  readonly id: string
  readonly #sealing: Uint8Array
  readonly #naming: Uint8Array
  readonly #digesting: Uint8Array

  constructor({ id, bytes }: SubjectKey) {
    this.id = id
    this.#sealing = derived(bytes, 'tallystick seal')
    this.#naming = derived(bytes, 'tallystick nonce')
    this.#digesting = derived(bytes, 'tallystick digest')
  }

  /** Nonce, sealed bytes and tag. `place` is bound to them: what was sealed elsewhere cannot be put here. */
  seal(bytes: Uint8Array, place: Uint8Array): Uint8Array {
    const nonce = createHmac('sha256', this.#naming)
      .update(lengthOf(place))
      .update(place)
      .update(bytes)
      .digest()
      .subarray(0, nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#sealing, nonce).setAAD(place)
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }

  /** Returns the name of a content digest in the clear: without the key, a reader cannot confirm a guess by it. */
  name(digest: string): string {
    return createHmac('sha256', this.#digesting).update(digest).digest('hex')
  }

  /** Throws where the bytes were sealed elsewhere, with another key, or have changed. */
  open(sealed: Uint8Array, place: Uint8Array): Uint8Array {
    const end = sealed.length - tagBytes
    const decipher = createDecipheriv('aes-256-gcm', this.#sealing, sealed.subarray(0, nonceBytes))
      .setAAD(place)
      .setAuthTag(sealed.subarray(end))
    return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, end)), decipher.final()])
  }
}

function derived(key: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, new Uint8Array(), purpose, 32))
}

/** The length comes before the place, so that no two pairs of place and bytes have the same name. */
function lengthOf(place: Uint8Array): Uint8Array {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(place.length)
  return length
}
