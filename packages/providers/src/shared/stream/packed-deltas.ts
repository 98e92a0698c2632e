import { endOfText } from '../json/json-end.ts'

/** Pieces of a network are far smaller, and a regular expression has no room for a text of many megabytes. */
const maxPieceBytes = 1024 * 1024

const [newline, comma, opening, closing, zero] = [0x0a, 0x2c, 0x5b, 0x5d, 0x30]
/** Every byte is one character, at its place. */
const bytesAsText = new TextDecoder('latin1')

/** What the records of a wire's deltas look like. */
export interface DeltaShape {
  /**
   * Where the whole record of a delta ends that begins at a place of a text; -1 where none does. Its data is the valid JSON of one object
   * that comes after `data: `, and no brace comes before it: so the client finds in a pack of such records what it would find in each.
   */
  readonly endOfDelta: (text: string, from: number) => number
  /** Where in such a record the JSON text begins that its object adds; `undefined` where its neighbours differ in more than this text. */
  readonly startOfText?: (text: string, from: number) => number | undefined
}

/** What a pack begins with. A list that a server itself sent begins with an event, and a text in it is no delta's. */
export const packMark = 0

/** What is in the place of an event in a pack: the event, or the text of one that says the same as the one before it but for its text. */
export type PackedDelta<Event> = Event | string

/**
 * Packs neighbouring deltas that arrive in one piece of a body into one record, whose data is `packMark` and their events: the client
 * takes many promises for a record, and parsing costs less than those. Of a delta that differs from the one before it in its text
 * alone, the list has the text. Other records pass as they are.
 */
export class DeltaPacker {
  readonly #shape: DeltaShape
  /** Whether a record has ended where the next piece begins. */
  #isBetween = true

  constructor(shape: DeltaShape) {
    this.#shape = shape
  }

  /** The piece with its deltas packed; the given bytes do not change. */
  pack(piece: Uint8Array): Uint8Array {
    const begins = this.#isBetween
    this.#isBetween = piece.at(-1) === newline && piece.at(-2) === newline
    const second = afterFirst(piece)
    // Where a model is slower than the network, each record comes alone.
    if (second === piece.length || piece.length > maxPieceBytes) return piece
    const text = bytesAsText.decode(piece)
    const packed = new PackedPiece(piece)
    for (let at = begins ? 0 : second; at < text.length;) {
      const deltas = this.#deltasFrom(text, at)
      if (deltas.places.length > 2) packed.add(deltas)
      at = deltas.end === at ? afterRecord(text, at) : deltas.end
    }
    return packed.bytes()
  }

  /** The neighbouring deltas from a place on. */
  #deltasFrom(text: string, from: number): Deltas {
    const { endOfDelta, startOfText = () => undefined } = this.#shape
    const places: number[] = []
    let [before, after] = [noFrame, noFrame]
    for (let at = from; ;) {
      const quote = at + before.length
      const end = text.slice(at, quote) === before ? endOfText(text, quote) : -1
      if (end !== -1 && text.startsWith(after, end)) {
        places.push(quote, end)
        at = end + after.length
        continue
      }
      const next = endOfDelta(text, at)
      if (next === -1) return { places, end: at }
      places.push(text.indexOf('{', at), next - 2)
      const start = startOfText(text, at)
      // A text that follows is one of this delta, and of no delta before it.
      before = start === undefined ? noFrame : text.slice(at, start)
      after = start === undefined ? noFrame : text.slice(endOfText(text, start), next)
      at = next
    }
  }
}

/** No record begins with it. */
const noFrame = '\0'

/** Neighbouring deltas: where each begins and ends that is to be in the list, and where the record of the last one ends. */
interface Deltas {
  readonly places: readonly number[]
  readonly end: number
}

/** To copy so many bytes one by one takes longer than to have them copied. */
const longBytes = 128

/** A piece of a body while its deltas are packed. */
class PackedPiece {
  readonly #piece: Uint8Array
  #packed: Uint8Array | undefined
  #length = 0
  /** Up to where the piece was taken. */
  #taken = 0

  constructor(piece: Uint8Array) {
    this.#piece = piece
  }

  /** Takes deltas as one record, and what is in front of them as it is. */
  add({ places, end }: Deltas): void {
    this.#packed ??= new Uint8Array(this.#piece.length)
    this.#copy(this.#taken, places[0] as number)
    // A pack is no longer than its records: each but the first loses more than a comma takes.
    this.#put(opening)
    this.#put(zero)
    for (let index = 0; index < places.length; index += 2) {
      this.#put(comma)
      this.#copy(places[index] as number, places[index + 1] as number)
    }
    this.#put(closing)
    this.#copy(end - 2, end)
    this.#taken = end
  }

  /** All of it; the piece itself where nothing was packed. */
  bytes(): Uint8Array {
    if (this.#packed === undefined) return this.#piece
    this.#copy(this.#taken, this.#piece.length)
    return this.#packed.subarray(0, this.#length)
  }

  #put(byte: number): void {
    const packed = this.#packed as Uint8Array
    packed[this.#length++] = byte
  }

  #copy(from: number, to: number): void {
    const packed = this.#packed as Uint8Array
    if (to - from > longBytes) {
      packed.set(this.#piece.subarray(from, to), this.#length)
      this.#length += to - from
    } else for (let at = from; at < to; at++) packed[this.#length++] = this.#piece[at] as number
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
