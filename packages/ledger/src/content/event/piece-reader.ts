import { isOpened, type HistoryPiece } from '../payload/stored-history.ts'

/** So many bytes of pieces are kept in memory: the next run of a session begins with most of what the last one did. */
const maxBytes = 16 * 1024 * 1024

/** Where pieces of histories are read from. */
export interface PieceSource {
  /** The piece under a name. */
  piece(name: string): Promise<HistoryPiece | undefined>
  /** The piece under a name, and all pieces before it. */
  chain(name: string): Promise<readonly HistoryPiece[]>
}

/** Pieces that come after each other, also in several branches: what was read of them is in memory once, and goes at once. */
interface Line {
  readonly names: string[]
  bytes: number
}

/**
 * Reads pieces of histories, and remembers those that were read last. A piece is named by what it says, so what is
 * remembered cannot be out of date.
 */
export class PieceReader {
  readonly #source: PieceSource
  readonly #known = new Map<string, { readonly piece: HistoryPiece; readonly line: Line }>()
  /** The most recently read one is last. */
  readonly #lines = new Set<Line>()
  #bytes = 0

  constructor(source: PieceSource) {
    this.#source = source
  }

  /** The pieces under these names, and all pieces before them, as far as what they say has not been read before. */
  async pieces(names: readonly string[]): Promise<ReadonlyMap<string, HistoryPiece>> {
    const found = new Map<string, HistoryPiece>()
    for (const name of names) await this.#follow(name, found)
    return found
  }

  /** Forgets what was read: what is read next is what is stored. */
  forget(): void {
    this.#known.clear()
    this.#lines.clear()
    this.#bytes = 0
  }

  async #follow(name: string, found: Map<string, HistoryPiece>): Promise<void> {
    const read: HistoryPiece[] = []
    const line = await this.#readBack(name, found, read)
    if (line || read.length > 0) this.#remember(read, line ?? { names: [], bytes: 0 })
  }

  /**
   * Most often one piece is new, and it comes after one that is known, and opened with all before it. Answers the line
   * that what is read belongs to, where there is one.
   */
  async #readBack(
    name: string,
    found: Map<string, HistoryPiece>,
    read: HistoryPiece[],
  ): Promise<Line | undefined> {
    let next: string | null = name
    if (!found.has(name) && !this.#known.has(name)) {
      const piece = await this.#source.piece(name)
      if (piece === undefined) return undefined
      read.push(piece)
      found.set(name, piece)
      next = piece.before
    }
    for (; next !== null && !found.has(next);) {
      const known = this.#known.get(next)
      if (known === undefined) return this.#takeChain(await this.#source.chain(next), found, read)
      found.set(next, known.piece)
      if (isOpened(known.piece) || known.piece.before === null) return known.line
      next = known.piece.before
    }
    return next === null ? undefined : this.#known.get(next)?.line
  }

  #takeChain(
    chain: readonly HistoryPiece[],
    found: Map<string, HistoryPiece>,
    read: HistoryPiece[],
  ): Line | undefined {
    let line: Line | undefined
    for (const piece of chain) {
      const known = this.#known.get(piece.name)
      line ??= known?.line
      if (known === undefined) read.push(piece)
      found.set(piece.name, known?.piece ?? piece)
    }
    return line
  }

  #remember(read: readonly HistoryPiece[], line: Line): void {
    for (const piece of read) {
      const { name, body } = piece
      if (this.#known.has(name)) continue
      this.#known.set(name, { piece, line })
      line.names.push(name)
      line.bytes += body.length
      this.#bytes += body.length
    }
    this.#lines.delete(line)
    this.#lines.add(line)
    for (const oldest of this.#lines) {
      if (this.#bytes <= maxBytes) break
      this.#drop(oldest)
    }
  }

  #drop(line: Line): void {
    this.#lines.delete(line)
    this.#bytes -= line.bytes
    line.bytes = 0
    for (const name of line.names.splice(0)) this.#known.delete(name)
  }
}
