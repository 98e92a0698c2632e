import { hash } from 'node:crypto'
import { canonicalJson, type SessionPlace } from '@tallystick/core'
import { envelopeText, type Envelope } from './stored-event.ts'

/** What the first event of a run is chained to: 32 zero bytes. */
export const genesisHash: Uint8Array = new Uint8Array(32)

/** First byte of what is hashed, so that a link and a seal can never be taken for each other. */
const linkTag = Uint8Array.of(1)
const sealTag = Uint8Array.of(2)

/** The block of SHA-256, to which HMAC pads its key. */
const blockBytes = 64

/**
 * What the chain says about a body: HMAC-SHA256 with the salt, of at most 64 bytes, as key. Without the salt, which
 * goes when the payload goes, nobody can confirm a guess at the body.
 *
 * HMAC is spelled out, since a key object for each event would cost ten times the hashing.
 */
export function commitmentOf(salt: Uint8Array, body: Uint8Array): Uint8Array {
  return sha256(padded(salt, 0x5c), sha256(padded(salt, 0x36), body))
}

function padded(key: Uint8Array, pad: number): Uint8Array {
  const block = Buffer.alloc(blockBytes, pad)
  for (let index = 0; index < key.length; index++) block[index] = (key[index] as number) ^ pad
  return block
}

/**
 * One link: SHA-256 over the byte 0x01, the 32 bytes of the link before, the canonical JSON of the envelope
 * (integers and ids only), and the 32 bytes of the body's commitment. Parts around the JSON have a fixed length, so
 * no two links are made of the same bytes.
 */
export function linkHash(previousHash: Uint8Array, envelope: Envelope, bodyCommit: Uint8Array): Uint8Array {
  return sha256(linkTag, previousHash, Buffer.from(envelopeText(envelope)), bodyCommit)
}

/** What a run's row holds, and its seal covers. */
export interface RunCell {
  readonly runId: string
  /** The `pos` of the run's first event. */
  readonly pos: number
  readonly headSeq: number
  readonly headHash: Uint8Array
  readonly epoch: number
  readonly session?: SessionPlace | undefined
}

/** SHA-256 over the byte 0x02 and the canonical JSON of a run's row: it shows a row that was changed by hand. */
export function sealOf({ runId, pos, headSeq, headHash, epoch, session }: RunCell): Uint8Array {
  const row = { runId, pos, headSeq, headHash: hexOf(headHash), epoch, ...session }
  return sha256(sealTag, Buffer.from(canonicalJson(row)))
}

/** Bytes as people compare them. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  return hash('sha256', Buffer.concat(parts), 'buffer')
}
