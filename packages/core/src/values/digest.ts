import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { toCanonicalJson, type JsonLike } from './json.ts'
import { ConfigurationError } from './errors.ts'

/** SHA-256 over the canonical JSON of a value, in hex. */
export function computeDigest<Value>(value: Value & JsonLike<Value>): string {
  const text = toCanonicalJson(value)
  return hostDigest === undefined ? bytesToHex(sha256(utf8ToBytes(text))) : hostDigest(text)
}

/** SHA-256 over the UTF-8 bytes of a text, in hex. */
export type TextDigest = (text: string) => string

let hostDigest: TextDigest | undefined

/** Computes digests with a function of the host from here on, or with the one of this file. Both must return the same. */
export function useHostDigest(digest: TextDigest | undefined): void {
  hostDigest = digest
}

/** The digest of `abc`, from the standard. */
const knownExample = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

/**
 * Computes all digests of this process with a SHA-256 function of the host, which takes a sixth of the time of the
 * portable one in this package. The function gets a text and returns the digest of its UTF-8 bytes, in hex. Throws a
 * `ConfigurationError` if it computes anything else.
 */
export function digestTextsWith(digest: TextDigest): void {
  if (digest('abc') !== knownExample) {
    throw new ConfigurationError(
      'The function given to digestTextsWith does not compute SHA-256 in hex, so it is not used: a ledger would hold digests that ' +
        'other processes cannot compute. Give a function that returns the SHA-256 of the UTF-8 bytes of a text, in hex.',
    )
  }
  useHostDigest(digest)
}

/**
 * Lets a function of the host compute all digests of this process, unless the application has given one. `find` looks for it;
 * what computes no SHA-256 in hex is not used, nor what throws: some hosts have functions of Node that only say that they are
 * not implemented.
 */
export function digestTextsByDefault(find: () => TextDigest | undefined): void {
  hostDigest ??= checkDigest(find())
}

function checkDigest(digest: TextDigest | undefined): TextDigest | undefined {
  try {
    return digest?.('abc') === knownExample ? digest : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns true if a text from outside equals a secret. Takes the same time for every wrong text of a length, in every runtime.
 */
export function isSameSecret(given: string, secret: string): boolean {
  if (given.length !== secret.length) return false
  let difference = 0
  for (let index = 0; index < secret.length; index++) {
    difference |= given.charCodeAt(index) ^ secret.charCodeAt(index)
  }
  return difference === 0
}
