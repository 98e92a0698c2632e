import { isOpened, type HistoryPiece } from '../payload/stored-history.ts'

/** How many bytes of pieces are kept in memory: the next run of a session begins with most of the messages of the last one. */
const maxBytes = 16 * 1024 * 1024

/** A store, as far as history pieces are read from it. */
export interface HistoryPieceSource {
  /** The piece under a name. */
  piece(name: string): Promise<HistoryPiece | undefined>
  /** The piece under a name, and all pieces before it. */
  chain(name: string): Promise<readonly HistoryPiece[]>
}

/** Pieces that follow each other, also in several branches. They are kept in memory, and forgotten, together. */
interface Line {
  readonly names: string[]
  bytes: number
}

/**
 * Reads history pieces, and keeps those that were read last. A piece is named by the digest of its content, so a kept piece is never
 * out of date.
 */
export class HistoryPieceReader {
  readonly #source: HistoryPieceSource
  readonly #known = new Map<string, { readonly piece: HistoryPiece; readonly line: Line }>()
  /** The most recently read one is last. */
  readonly #lines = new Set<Line>()
  #bytes = 0

  constructor(source: HistoryPieceSource) {
    this.#source = source
  }

  /** Returns the pieces under these names and all pieces before them, except those before a piece that was opened earlier. */
  async pieces(names: readonly string[]): Promise<ReadonlyMap<string, HistoryPiece>> {
    const found = new Map<string, HistoryPiece>()
    for (const name of names) await this.#follow(name, found)
    return found
  }

  /** Forgets all pieces, so that the next ones are read from the store. */
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
   * Most often one piece is new, and follows one that is known and was opened with all before it. Returns the known line to which
   * the read pieces belong, if there is one.
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
