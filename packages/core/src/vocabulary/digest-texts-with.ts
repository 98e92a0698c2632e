import { ConfigurationError } from './errors.ts'
import { hasHostDigest, type TextDigest, useHostDigest } from './values/digest.ts'

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
      'The function given to digestTextsWith computes no SHA-256 in hex, so nothing uses it: a ledger would hold digests that ' +
        'other processes cannot compute. Give a function that answers with the SHA-256 of the UTF-8 bytes of a text, in hex.',
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
  if (hasHostDigest()) return
  const digest = find()
  if (digest !== undefined && computesSha256(digest)) useHostDigest(digest)
}

function computesSha256(digest: TextDigest): boolean {
  try {
    return digest('abc') === knownExample
  } catch {
    return false
  }
}
