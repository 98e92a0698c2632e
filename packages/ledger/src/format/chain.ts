import { hash, randomFillSync } from 'node:crypto'
import { digestTextsWith } from '@tallystick/core/store-kit'

/** Every digest of the record is SHA-256 as 43 characters of base64url. */
export type Digest = string

/** 32 zero bytes: what the first event of a run, and the first removal of a store, is chained to. */
export const genesisHash: Digest = 'A'.repeat(43)

/** What the hash of an event covers in the clear: every column but `pos`, `body`, `salt`, `commitment` and `hash` itself. */
export interface RowEnvelope {
  readonly run_id: string
  readonly seq: number
  readonly type: string
  readonly turn: number
  readonly tool_call_id: string | null
  /** Which attempt of its call the event starts or decides; 0 for the result; null for what may happen again. */
  readonly attempt: number | null
  readonly at: number
  readonly epoch: number
  readonly v: number
  /** The key that the body is sealed with. */
  readonly key_id: string | null
}

/** Where the chain of a run stands: its row, as its seal covers it. */
export interface RunCell {
  /** The `pos` of its first event. */
  readonly pos: number
  readonly run_id: string
  readonly head_seq: number
  readonly head_hash: Digest
  readonly epoch: number
  readonly session_id: string | null
  readonly session_place: number | null
  /** When it ended, in milliseconds since 1970 UTC. */
  readonly ended_at: number | null
  /** The running digest of the messages that it begins with, which `history` holds. */
  readonly history: string | null
}

/**
 * The commitment of the chain to a body. Without the salt, which goes with the body, nobody can confirm a guess at what
 * the body said.
 */
export function commitTo(salt: string, body: string): Digest {
  return digestOf(salt + body)
}

/** One link: the hash before it, the envelope as a JSON list, and the commitment. The hashes have one length. */
export function linkHash(previous: Digest, envelope: RowEnvelope, commitment: Digest): Digest {
  return digestOf(previous + envelopeText(envelope) + commitment)
}

/** The envelope as text, which also binds a sealed body to its place. Spelled out, since each event needs it. */
export function envelopeText(envelope: RowEnvelope): string {
  const { run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id } = envelope
  const call = tool_call_id === null ? 'null' : JSON.stringify(tool_call_id)
  const key = key_id === null ? 'null' : JSON.stringify(key_id)
  return `[${JSON.stringify(run_id)},${seq},${JSON.stringify(type)},${turn},${call},${attempt},${at},${epoch},${v},${key}]`
}

/** The seal of a run's row, which shows a row that was changed by hand. */
export function sealRun(run: RunCell): Digest {
  const { pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history } = run
  const fields = [run_id, pos, head_seq, head_hash, epoch, session_id, session_place, ended_at, history]
  return digestOf(`run ${JSON.stringify(fields)}`)
}

/** The SHA-256 of a text. */
export function digestOf(text: string): Digest {
  return hash('sha256', text, 'base64url')
}

const saltBytes = 15
const saltCharacters = 20
const saltsAtOnce = 256
let salts = ''
let nextSalt = 0

/** 120 random bits as text. Drawn many at a time: to ask Node for each would cost more than to hash with it. */
export function newSalt(): string {
  if (nextSalt >= salts.length) {
    salts = randomFillSync(Buffer.allocUnsafe(saltsAtOnce * saltBytes)).toString('base64url')
    nextSalt = 0
  }
  const salt = salts.slice(nextSalt, nextSalt + saltCharacters)
  nextSalt += saltCharacters
  return salt
}

/** Lets core compute its digests by the function of Node. Call it before a ledger is used. */
export function digestNatively(): void {
  digestTextsWith((text) => hash('sha256', text))
}
