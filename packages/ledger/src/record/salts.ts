import { randomFillSync } from 'node:crypto'

/** Enough bytes that a guess at a body cannot be confirmed without the salt. */
export const saltBytes = 16

/** Random bytes for the next salts: asking Node for the bytes of each salt would cost more than hashing with them. */
const pool = Buffer.allocUnsafeSlow(256 * saltBytes)
let next: number = pool.length

/** A new random salt, which no other row has. */
export function newSalt(): Uint8Array {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  const salt = new Uint8Array(saltBytes)
  for (let index = 0; index < saltBytes; index++, next++) {
    salt[index] = pool[next] as number
    // What the pool still held could confirm a guess after the salt itself was removed.
    pool[next] = 0
  }
  return salt
}
