import { hash } from 'node:crypto'

const leafTag = Uint8Array.of(0)
const nodeTag = Uint8Array.of(1)

/**
 * The Merkle tree of RFC 6962 over a list that only grows. Holds the roots of its whole subtrees, so that it costs the
 * logarithm of what it was given.
 */
export class MerkleLog {
  /** Roots of whole subtrees, the largest first; their sizes are the bits of `size`. */
  readonly #subtrees: Uint8Array[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  append(entry: string | Uint8Array): void {
    let node = sha256(leafTag, typeof entry === 'string' ? Buffer.from(entry) : entry)
    for (let size = this.#size; size % 2 === 1; size = (size - 1) / 2) {
      node = sha256(nodeTag, this.#subtrees.pop() as Uint8Array, node)
    }
    this.#subtrees.push(node)
    this.#size += 1
  }

  /** The root over all entries so far; of none, the digest of nothing. */
  root(): Uint8Array {
    const [last, ...before] = this.#subtrees.toReversed()
    if (last === undefined) return sha256()
    return before.reduce((right, left) => sha256(nodeTag, left, right), last)
  }
}

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  return hash('sha256', Buffer.concat(parts), 'buffer')
}
