import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/** SHA-256 of a text in UTF-8. */
type HashText = (text: string, encoding: 'base64url' | 'hex') => string

/** Node's function takes a sixth of the time of the portable one, which a browser has. */
export const hashText: HashText = findNative() ?? hashPortably

function findNative(): HashText | undefined {
  if (typeof process === 'undefined') return undefined
  const crypto = process.getBuiltinModule?.('node:crypto')
  return crypto && ((text, encoding) => crypto.hash('sha256', text, encoding))
}

/** The same in any runtime. */
export function hashPortably(text: string, encoding: 'base64url' | 'hex'): string {
  const bytes = sha256(utf8ToBytes(text))
  if (encoding === 'hex') return bytesToHex(bytes)
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
