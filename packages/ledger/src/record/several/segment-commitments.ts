import { hash } from 'node:crypto'
import { isGone, lineOfGone, openedBody, segmentLines, type SegmentLines } from './several-form.ts'

/** First byte of the hashed bytes, different from those of links, seals and removals. */
const saltTag = 4
const segmentTag = 5

const saltBytes = 16
const digestBytes = 32
const saltsOfDigest = 4

/** Where the parts of most digests are laid together. */
const scratch = Buffer.alloc(64 * 1024)

/** What a row of segments has in the place of its salt once it was opened. */
const noSalt: Uint8Array = new Uint8Array(saltBytes)

/** A payload of segments: the salt that all of theirs are derived from, and the bytes. */
export interface SeveralPayload {
  readonly salt: Uint8Array
  readonly body: Uint8Array
}

/**
 * What the link of a row of segments covers in the place of a commitment: its first line, and the commitment to each
 * segment. `undefined` where the payload is not written as one of segments is.
 */
export function severalCommitment({ salt, body }: SeveralPayload): Uint8Array | undefined {
  const lines = segmentLines(body)
  if (lines === undefined) return undefined
  if (lines.opened && Buffer.compare(salt, noSalt) !== 0) return undefined
  const { heads, segments } = lines
  const commitment = Buffer.allocUnsafe(heads.length + digestBytes * segments.length)
  commitment.set(heads, 0)
  const salts = lines.opened ? undefined : new SegmentSalts(salt)
  for (const [index, line] of segments.entries()) {
    const place = heads.length + digestBytes * index
    const opened = lines.opened?.[index] ?? ''
    if (lines.opened && isGone(line)) commitment.write(opened, place, 'hex')
    else commitment.write(segmentCommitment(salts?.at(index) ?? opened, line), place, 'binary')
  }
  return commitment
}

/** SHA-256 over the byte 0x05, the 16 bytes of the salt, and the line of the segment: as a text of bytes. */
function segmentCommitment(salt: Uint8Array | string, line: Uint8Array): string {
  const length = 1 + saltBytes + line.length
  const bytes = length <= scratch.length ? scratch : Buffer.allocUnsafe(length)
  bytes[0] = segmentTag
  if (typeof salt === 'string') bytes.write(salt, 1, 'hex')
  else bytes.set(salt, 1)
  bytes.set(line, 1 + saltBytes)
  return hash('sha256', bytes.subarray(0, length), 'binary')
}

/**
 * The salts of a row's segments, derived from the salt of the row: SHA-512 over the byte 0x04, that salt and a number from 0
 * gives four of them. One of them tells nothing of the others, and nothing of the salt of the row.
 */
class SegmentSalts {
  readonly #bytes = Buffer.alloc(1 + saltBytes + 1, saltTag)
  #digest: Buffer = Buffer.alloc(0)
  #block = -1

  constructor(salt: Uint8Array) {
    this.#bytes.set(salt, 1)
  }

  at(index: number): Uint8Array {
    const block = Math.floor(index / saltsOfDigest)
    if (block !== this.#block) {
      this.#bytes[1 + saltBytes] = block
      this.#digest = Buffer.from(hash('sha512', this.#bytes, 'binary'), 'binary')
      this.#block = block
    }
    const place = saltBytes * (index % saltsOfDigest)
    return this.#digest.subarray(place, place + saltBytes)
  }
}

/**
 * The payload without some of its segments: their commitments stay, so that the chain holds, and the salts of the others
 * in the place of the one that all were derived from, so that a guess at what is gone cannot be confirmed. The payload itself
 * where none of them is taken. Throws where it is not written as one of segments is.
 */
export function withoutSegments(
  payload: SeveralPayload,
  isTaken: (index: number) => boolean,
): SeveralPayload {
  const lines = segmentLines(payload.body)
  if (lines === undefined) throw new Error('its body does not hold the events of its row')
  if (!lines.segments.some((line, index) => isTaken(index) && !isGone(line))) return payload
  const salts = new SegmentSalts(payload.salt)
  const opened = lines.segments.map((line, index) => {
    const before = lines.opened?.[index]
    if (isGone(line)) return before ?? ''
    const salt = before ?? Buffer.from(salts.at(index)).toString('hex')
    return isTaken(index) ? Buffer.from(segmentCommitment(salt, line), 'binary').toString('hex') : salt
  })
  const left: SegmentLines = {
    heads: lines.heads,
    segments: lines.segments.map((line, index) => (isTaken(index) ? lineOfGone : line)),
  }
  return { salt: noSalt, body: openedBody(left, opened) }
}
