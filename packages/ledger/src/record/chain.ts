import { hash } from 'node:crypto'
import { digestTextsWith, type SessionPlace } from '@tallystick/core/store-kit'
import { envelopeText, type RowEnvelope } from './envelope.ts'

/** What the first event of a run is chained to: 32 zero bytes. */
export const genesisHash: Uint8Array = new Uint8Array(32)

/** First byte of the hashed bytes, so that a link and a row digest are never the same. */
const linkTag = 1
const rowDigestTag = 2

const digestBytes = 32

/** The block of SHA-256, to which HMAC pads its key. */
const blockBytes = 64

/** Where the parts of most digests are laid together. What is larger gets room of its own. */
const scratch = Buffer.alloc(16 * 1024)

/** The outer half of an HMAC: a padded key and the digest of the inner half. */
const outer = Buffer.alloc(blockBytes + digestBytes)

/**
 * Returns the commitment of the chain to a body: HMAC-SHA256 with the salt, of at most 64 bytes, as key. Without the
 * salt, which is removed together with the payload, a guess at the body cannot be confirmed.
 *
 * HMAC is written out, since a key object for each event would cost ten times the hashing.
 */
export function commitmentOf(salt: Uint8Array, body: Uint8Array): Uint8Array {
  return Buffer.from(commitmentText(salt, body), 'latin1')
}

/** Returns the commitment as a binary string, one code unit for each byte, as `isDigest` compares it. */
export function commitmentText(salt: Uint8Array, body: Uint8Array): string {
  const inner = roomFor(blockBytes + body.length)
  inner.fill(0x36, 0, blockBytes)
  outer.fill(0x5c, 0, blockBytes)
  for (let index = 0; index < salt.length; index++) {
    const byte = salt[index] as number
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  inner.set(body, blockBytes)
  outer.write(digestOf(inner.subarray(0, blockBytes + body.length)), blockBytes, 'binary')
  return digestOf(outer)
}

/**
 * One link: SHA-256 over the byte 0x01, the 32 bytes of the link before, the canonical JSON of the envelope
 * (integers and ids only), and the 32 bytes of the body's commitment. Parts around the JSON have a fixed length, so
 * no two links are made of the same bytes.
 */
export function linkHash(
  previousHash: Uint8Array,
  envelope: RowEnvelope,
  bodyCommit: Uint8Array,
): Uint8Array {
  return Buffer.from(linkText(previousHash, envelope, bodyCommit), 'latin1')
}

/** Returns the hash of the link as a binary string, one code unit for each byte, as `isDigest` compares it. */
export function linkText(previousHash: Uint8Array, envelope: RowEnvelope, bodyCommit: Uint8Array): string {
  const text = envelopeText(envelope)
  // A code unit of a text is at most three bytes of UTF-8.
  const link = roomFor(1 + previousHash.length + 3 * text.length + bodyCommit.length)
  link[0] = linkTag
  link.set(previousHash, 1)
  let end = 1 + previousHash.length
  end += link.write(text, end)
  link.set(bodyCommit, end)
  return digestOf(link.subarray(0, end + bodyCommit.length))
}

/** What a run's row holds, and its digest covers. */
export interface RunCell {
  readonly runId: string
  /** The `pos` of the run's first event. */
  readonly pos: number
  readonly headSeq: number
  readonly headHash: Uint8Array
  readonly epoch: number
  readonly session?: SessionPlace | undefined
}

/**
 * SHA-256 over the byte 0x02 and the canonical JSON of a run's row: it shows a row that was changed by hand. The text is
 * spelled out in the order of its keys, since each append makes one.
 */
export function rowDigest({ runId, pos, headSeq, headHash, epoch, session }: RunCell): Uint8Array {
  const place = session
    ? `,"sessionId":${JSON.stringify(session.sessionId)},"sessionPlace":${session.sessionPlace}`
    : ''
  const text =
    `{"epoch":${epoch},"headHash":"${hexOf(headHash)}","headSeq":${headSeq},"pos":${pos},` +
    `"runId":${JSON.stringify(runId)}${place}}`
  // A code unit of a text is at most three bytes of UTF-8.
  const row = roomFor(1 + 3 * text.length)
  row[0] = rowDigestTag
  const end = 1 + row.write(text, 1)
  return Buffer.from(digestOf(row.subarray(0, end)), 'binary')
}

/** Whether bytes are those of a binary string. */
export function isDigest(text: string, bytes: Uint8Array): boolean {
  if (bytes.length !== text.length) return false
  for (let index = 0; index < bytes.length; index++) {
    if (bytes[index] !== text.charCodeAt(index)) return false
  }
  return true
}

/** Bytes as people compare them. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

function roomFor(bytes: number): Buffer {
  return bytes <= scratch.length ? scratch : Buffer.allocUnsafe(bytes)
}

/** As a text of bytes: made in a third of the time that a buffer takes. */
function digestOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'binary')
}

/** Lets core compute its digests by the function of Node. To be called before a ledger is used. */
export function digestNatively(): void {
  digestTextsWith((text) => hash('sha256', text))
}
