import { hash } from 'node:crypto'
import {
  comma,
  isGone,
  hasAllSegments,
  isWholeTail,
  lineOfGone,
  newLine,
  openedBody,
  segmentLines,
  type SegmentLines,
} from './segmented-body.ts'

/** First byte of the hashed bytes, different from those of links, seals and removals. */
const saltTag = 4
const segmentTag = 5

const saltBytes = 16
const digestBytes = 32
const saltsOfDigest = 4

/** Where the parts of most digests are laid together. */
const scratch = Buffer.alloc(64 * 1024)

/** The salt of a segmented row once segments were taken away: those that are left then have a salt each. */
const noSalt: Uint8Array = new Uint8Array(saltBytes)

/** The payload of a segmented row: the salt from which the salts of its segments are derived, and the bytes. */
export interface SegmentedPayload {
  readonly salt: Uint8Array
  readonly body: Uint8Array
}

/**
 * What the link of a segmented row covers in place of a commitment: the first line of the body, and the commitment to each
 * segment. `undefined` if the payload is not written as that of a segmented row.
 */
export function segmentedCommitment(payload: SegmentedPayload): Uint8Array | undefined {
  return wholeCommitment(payload) ?? linesCommitment(payload)
}

/**
 * Computes it without taking the lines apart, where all segments are there, and the first line has room for a tag and a salt:
 * as in nearly all payloads. Returns `undefined` for others. In a copy of the body, the tag and the salt of a line are written
 * over the bytes before it, which are not needed there any more, and the line is hashed together with them.
 */
function wholeCommitment({ salt, body }: SegmentedPayload): Uint8Array | undefined {
  if (!hasAllSegments(body)) return undefined
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const headsEnd = bytes.indexOf(newLine)
  if (headsEnd <= saltBytes) return undefined
  const room = body.length <= scratch.length ? scratch : Buffer.allocUnsafe(body.length)
  room.set(body, 0)
  const salts = new SegmentSalts(salt)
  let digests = ''
  for (let [start, index] = [headsEnd + 1, 0]; ; index++) {
    const end = bytes.indexOf(newLine, start)
    if (end === -1) return undefined
    const hasNext = body[end - 1] === comma
    const place = start - saltBytes - 1
    room[place] = segmentTag
    salts.write(index, room, place + 1)
    const length = (hasNext ? end - 1 : end) - place
    digests += hash('sha256', new Uint8Array(room.buffer, room.byteOffset + place, length), 'binary')
    start = end + 1
    if (hasNext) continue
    if (!isWholeTail(body, start)) return undefined
    const commitment = Buffer.allocUnsafe(headsEnd + digests.length)
    commitment.set(bytes.subarray(0, headsEnd), 0)
    commitment.write(digests, headsEnd, 'latin1')
    return commitment
  }
}

function linesCommitment({ salt, body }: SegmentedPayload): Uint8Array | undefined {
  const lines = segmentLines(body)
  if (lines === undefined) return undefined
  if (lines.opened && Buffer.compare(salt, noSalt) !== 0) return undefined
  return commitmentOfLines(salt, lines)
}

/** The same of lines that are known already. */
function commitmentOfLines(salt: Uint8Array, lines: SegmentLines): Uint8Array {
  const { heads, segments } = lines
  const commitment = Buffer.allocUnsafe(heads.length + digestBytes * segments.length)
  commitment.set(heads, 0)
  const salts = lines.opened ? undefined : new SegmentSalts(salt)
  for (const [index, line] of segments.entries()) {
    const place = heads.length + digestBytes * index
    const opened = lines.opened?.[index] ?? ''
    if (lines.opened && isGone(line)) commitment.write(opened, place, 'hex')
    else commitment.write(segmentCommitment(salts?.at(index) ?? opened, line), place, 'latin1')
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
  readonly #bytes = new Uint8Array(1 + saltBytes + 1)
  /** As a text of bytes. */
  #digest = ''
  #block = -1

  constructor(salt: Uint8Array) {
    this.#bytes[0] = saltTag
    this.#bytes.set(salt, 1)
  }

  at(index: number): Uint8Array {
    const salt = new Uint8Array(saltBytes)
    this.write(index, salt, 0)
    return salt
  }

  write(index: number, bytes: Uint8Array, place: number): void {
    const block = Math.floor(index / saltsOfDigest)
    if (block !== this.#block) {
      this.#bytes[1 + saltBytes] = block
      this.#digest = hash('sha512', this.#bytes, 'binary')
      this.#block = block
    }
    const from = saltBytes * (index % saltsOfDigest)
    for (let at = 0; at < saltBytes; at++) bytes[place + at] = this.#digest.charCodeAt(from + at)
  }
}

/**
 * The payload without some of its segments: their commitments stay, so that the chain holds, and the salts of the others
 * in place of the one that all were derived from, so that a guess at what is gone cannot be confirmed. The payload itself
 * if none of them is taken. Throws if it is not written as that of a segmented row.
 */
export function withoutSegments(
  payload: SegmentedPayload,
  isTaken: (index: number) => boolean,
): SegmentedPayload {
  const lines = segmentLines(payload.body)
  if (lines === undefined) throw new Error('its body does not hold the events of its row')
  if (!lines.segments.some((_line, index) => isTaken(index))) return payload
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
