import { decodeBase64Url, encodeBase64Url } from 'hono/utils/encode'
import { toCallerId, type Principal } from './principal.ts'

/** The list that a place belongs to: of one caller, and of one session if it asked for that. */
export interface PlacedList {
  readonly of: 'runs' | 'events'
  readonly principal: Principal
  readonly sessionId?: string | undefined
}

/**
 * Encrypts the place in a list where a page ended at a run, or an event of a run, that its caller does not see. Only a
 * server with the same secret decrypts it, and only for the same list. So a place reveals neither the run nor whether the
 * run belongs to a session.
 */
export interface SealedPlaces {
  /** Encrypts the id of a run, or the cursor of an event. */
  seal(place: string, list: PlacedList): Promise<string>
  /** Decrypts a place; `undefined` for a text that no server with this secret made for this list. */
  open(sealed: string, list: PlacedList): Promise<string | undefined>
}

const purpose = 'tallystick: places in lists of runs'
const nonceBytes = 12
/** The nonce, a text, and the tag of 16 bytes, in base64url. */
const placeShape = /^[\w-]{38,1000}$/

/** Makes places under a secret; by default one that only this process has. */
export function createSealedPlaces(secret: string | undefined): SealedPlaces {
  let made: ReturnType<typeof deriveKey> | undefined
  const key = (): ReturnType<typeof deriveKey> => (made ??= deriveKey(secret))
  return {
    async seal(place, list) {
      const iv = crypto.getRandomValues(new Uint8Array(nonceBytes))
      const sealed = await crypto.subtle.encrypt(createCipher(iv, list), await key(), encodeText(place))
      return encodeBase64Url(new Uint8Array([...iv, ...new Uint8Array(sealed)]).buffer).replaceAll('=', '')
    },
    async open(sealed, list) {
      if (!placeShape.test(sealed)) return undefined
      try {
        const bytes = decodeBase64Url(sealed)
        const [iv, content] = [bytes.subarray(0, nonceBytes), bytes.subarray(nonceBytes)]
        const opened = await crypto.subtle.decrypt(createCipher(iv, list), await key(), content)
        return new TextDecoder().decode(opened)
      } catch {
        // A forged text: it is not base64, or its tag does not fit.
        return undefined
      }
    },
  }
}

async function deriveKey(secret: string | undefined) {
  const material = secret === undefined ? crypto.getRandomValues(new Uint8Array(32)) : encodeText(secret)
  const base = await crypto.subtle.importKey('raw', material, 'HKDF', false, ['deriveKey'])
  return await crypto.subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: encodeText(purpose) },
    base,
    { name: 'AES-GCM', length: 256 },
    false,
    ['encrypt', 'decrypt'],
  )
}

/** The list is authenticated with the place, so that a place of one list opens in no other. */
function createCipher(iv: Uint8Array<ArrayBuffer>, { of, principal, sessionId }: PlacedList) {
  const additionalData = encodeText(JSON.stringify([of, toCallerId(principal), sessionId ?? null]))
  return { name: 'AES-GCM', iv, additionalData }
}

function encodeText(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}
