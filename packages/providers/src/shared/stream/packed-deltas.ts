/** Pieces of a network are far smaller, and a regular expression has no room for a text of many megabytes. */
const maxPieceBytes = 1024 * 1024

const [newline, space, comma, opening, closing] = [0x0a, 0x20, 0x2c, 0x5b, 0x5d]
/** Every byte is one character, at its place. */
const bytesAsText = new TextDecoder('latin1')

/**
 * Where the whole record of a delta ends that begins at a place of a text; -1 where none does. Its data is the valid JSON of one object
 * that comes after `data: `, and no brace comes before it: so the client finds in a pack of such records what it would find in each.
 */
export type EndOfDelta = (text: string, from: number) => number

/**
 * Packs neighbouring deltas that arrive in one piece of a body into one record, whose data is the list of their events: the client
 * takes many promises for a record, and parsing costs less than those. Other records pass as they are.
 */
export class DeltaPacker {
  readonly #endOfDelta: EndOfDelta
  /** Whether a record has ended where the next piece begins. */
  #isBetween = true

  constructor(endOfDelta: EndOfDelta) {
    this.#endOfDelta = endOfDelta
  }

  /** The piece with its deltas packed; the given bytes do not change. */
  pack(piece: Uint8Array): Uint8Array {
    const begins = this.#isBetween
    this.#isBetween = piece.at(-1) === newline && piece.at(-2) === newline
    const second = afterFirst(piece)
    // Where a model is slower than the network, each record comes alone.
    if (second === piece.length || piece.length > maxPieceBytes) return piece
    const text = bytesAsText.decode(piece)
    let packed: Uint8Array | undefined
    for (let at = begins ? 0 : second; at < text.length;) {
      const ends = this.#endsOfDeltas(text, at)
      if (ends.length > 1) {
        // A slice of a Buffer is the same bytes.
        packed ??= new Uint8Array(piece)
        packInPlace(packed, text, at, ends)
      }
      at = ends.at(-1) ?? afterRecord(text, at)
    }
    return packed ?? piece
  }

  /** Where each of the neighbouring deltas from a place on ends. */
  #endsOfDeltas(text: string, from: number): readonly number[] {
    const ends: number[] = []
    for (let end = this.#endOfDelta(text, from); end !== -1; end = this.#endOfDelta(text, end)) ends.push(end)
    return ends
  }
}

function afterFirst(piece: Uint8Array): number {
  let at = piece.indexOf(newline)
  while (at !== -1 && piece[at + 1] !== newline) at = piece.indexOf(newline, at + 1)
  return at === -1 ? piece.length : at + 2
}

function afterRecord(text: string, from: number): number {
  const end = text.indexOf('\n\n', from)
  return end === -1 ? text.length : end + 2
}

/** Makes one record of several, as long as they are together: what parted two of them becomes a comma and spaces. */
function packInPlace(bytes: Uint8Array, text: string, from: number, ends: readonly number[]): void {
  bytes[text.indexOf('{', from) - 1] = opening
  let last = from
  for (const end of ends.slice(0, -1)) {
    last = text.indexOf('{', end)
    bytes.fill(space, end - 2, last)
    bytes[end - 2] = comma
  }
  // The last event goes one byte ahead, so that the list can be closed.
  const end = ends.at(-1) as number
  bytes.copyWithin(last - 1, last, end - 2)
  bytes[end - 3] = closing
}
