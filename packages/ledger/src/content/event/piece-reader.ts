import type { HistoryPiece } from '../payload/stored-history.ts'

/** So many bytes of pieces are kept in memory: the next run of a session begins with most of what the last one did. */
const maxBytes = 16 * 1024 * 1024

/** Where pieces of histories are read from. */
export interface PieceSource {
  /** The piece under a name. */
  piece(name: string): Promise<HistoryPiece | undefined>
  /** The piece under a name, and all pieces before it. */
  chain(name: string): Promise<readonly HistoryPiece[]>
}

/**
 * Reads pieces of histories, and remembers those that were read last. A piece is named by what it says, so what is
 * remembered cannot be out of date.
 */
export class PieceReader {
  readonly #source: PieceSource
  /** The most recently read one is last. */
  readonly #known = new Map<string, HistoryPiece>()
  #bytes = 0

  constructor(source: PieceSource) {
    this.#source = source
  }

  /** The pieces under these names, and all pieces before them. */
  async pieces(names: readonly string[]): Promise<ReadonlyMap<string, HistoryPiece>> {
    const found = new Map<string, HistoryPiece>()
    for (const name of names) await this.#follow(name, found)
    return found
  }

  /** Forgets what was read: what is read next is what is stored. */
  forget(): void {
    this.#known.clear()
    this.#bytes = 0
  }

  /** Most often one piece is new, and it comes after those that are known. */
  async #follow(name: string, found: Map<string, HistoryPiece>): Promise<void> {
    let isFirst = true
    for (let next: string | null = name; next !== null && !found.has(next);) {
      let piece = this.#known.get(next)
      if (piece === undefined && !isFirst) {
        for (const each of await this.#source.chain(next)) found.set(each.name, this.#remember(each))
        return
      }
      piece ??= await this.#source.piece(next)
      if (piece === undefined) return
      isFirst = false
      found.set(next, this.#remember(piece))
      next = piece.before
    }
  }

  #remember(piece: HistoryPiece): HistoryPiece {
    const known = this.#known.get(piece.name) ?? piece
    if (this.#known.delete(piece.name)) this.#bytes -= known.body.length
    this.#known.set(piece.name, known)
    this.#bytes += known.body.length
    for (const [name, { body }] of this.#known) {
      if (this.#bytes <= maxBytes) break
      this.#known.delete(name)
      this.#bytes -= body.length
    }
    return known
  }
}
