import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { canonicalJson, type Json } from './json.ts'

/** SHA-256 over the canonical JSON of a value, in hex. */
export function digestOf(value: Json): string {
  return bytesToHex(sha256(utf8ToBytes(canonicalJson(value))))
}
