/** How each record of a delta begins, up to its JSON. */
const head = 'event: content_block_delta\ndata:'

/**
 * A whole record of a delta that adds one text. It holds valid JSON, whatever the text: the client finds in a pack of such records
 * what it would find in each.
 */
const deltaRecord =
  // oxlint-disable-next-line no-control-regex -- JSON has none of them in a text
  /event: content_block_delta\ndata: \{"type":"content_block_delta","index":(?:0|[1-9]\d{0,8}),"delta":\{"type":"[a-z_]{1,40}","[a-z_]{1,40}":"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"\} *\}\n\n/y

/** Pieces of a network are far smaller, and a regular expression has no room for a text of many megabytes. */
const maxPieceBytes = 1024 * 1024

const [newline, space, comma, opening, closing] = [0x0a, 0x20, 0x2c, 0x5b, 0x5d]
/** Every byte is one character, at its place. */
const bytesAsText = new TextDecoder('latin1')

/**
 * Packs neighbouring deltas that arrive in one piece of a body into one record, whose data is the list of their events: the client
 * takes many promises for a record, and parsing costs less than those. Other records pass as they are.
 */
export class DeltaPacker {
  /** Whether a record has ended where the next piece begins. */
  #isBetween = true

  /** The piece with its deltas packed; the given bytes do not change. */
  pack(piece: Uint8Array): Uint8Array {
    const begins = this.#isBetween
    this.#isBetween = piece.at(-1) === newline && piece.at(-2) === newline
    if (piece.length < 4 * head.length || piece.length > maxPieceBytes) return piece
    const text = bytesAsText.decode(piece)
    let packed: Uint8Array | undefined
    for (let at = begins ? 0 : afterRecord(text, 0); at < text.length;) {
      const ends = endsOfDeltas(text, at)
      if (ends.length > 1) {
        packed ??= piece.slice()
        packInPlace(packed, at, ends)
      }
      at = ends.at(-1) ?? afterRecord(text, at)
    }
    return packed ?? piece
  }
}

function afterRecord(text: string, from: number): number {
  const end = text.indexOf('\n\n', from)
  return end === -1 ? text.length : end + 2
}

/** Where each of the neighbouring deltas from a place on ends. */
function endsOfDeltas(text: string, from: number): readonly number[] {
  const ends: number[] = []
  deltaRecord.lastIndex = from
  while (deltaRecord.test(text)) ends.push(deltaRecord.lastIndex)
  return ends
}

/** Makes one record of several, as long as they are together: what parted two of them becomes a comma and spaces. */
function packInPlace(bytes: Uint8Array, from: number, ends: readonly number[]): void {
  bytes[from + head.length] = opening
  let last = from
  for (const end of ends.slice(0, -1)) {
    bytes.fill(space, end - 2, end + head.length + 1)
    bytes[end - 2] = comma
    last = end
  }
  // The last event goes one byte ahead, so that the list can be closed.
  const end = ends.at(-1) as number
  bytes.copyWithin(last + head.length, last + head.length + 1, end - 2)
  bytes[end - 3] = closing
}
