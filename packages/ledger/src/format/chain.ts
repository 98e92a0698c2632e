import type { RunId } from '@tallystick/core'
import { digestTextsWith } from '@tallystick/core/store-kit'
import { hashText } from './sha256.ts'

/** Every digest of the record is SHA-256 as 43 characters of base64url. */
export type Digest = string

/** 32 zero bytes: what the first event of a run, and the first removal of a store, is chained to. */
export const genesisHash: Digest = 'A'.repeat(43)

/** The columns that the hash of an event covers: all but `pos`, `body`, `salt`, `commitment` and `hash` itself. */
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
  return digestText(salt + body)
}

/** One link: the hash before it, the envelope as a JSON list, and the commitment. The hashes have one length. */
export function computeLinkHash(previous: Digest, envelope: RowEnvelope, commitment: Digest): Digest {
  return digestText(previous + formatEnvelope(envelope) + commitment)
}

/** The envelope as a JSON list, which also binds a sealed body to its place. */
export function formatEnvelope(envelope: RowEnvelope): string {
  const { run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id } = envelope
  return JSON.stringify([run_id, seq, type, turn, tool_call_id, attempt, at, epoch, v, key_id])
}

/** The seal of a run's row, which shows a row that was changed by hand. */
export function sealRun(run: RunCell): Digest {
  const { pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history } = run
  const fields = [run_id, pos, head_seq, head_hash, epoch, session_id, session_place, ended_at, history]
  return digestText(`run ${JSON.stringify(fields)}`)
}

/** The SHA-256 of a text. */
export function digestText(text: string): Digest {
  return hashText(text, 'base64url')
}

const saltBytes = 15
const saltCharacters = 20
const saltsAtOnce = 256
let salts = ''
let nextSalt = 0

/** 120 random bits as text. Drawn many at a time: to ask for each would cost more than to hash with it. */
export function drawSalt(): string {
  if (nextSalt >= salts.length) {
    salts = crypto.getRandomValues(Buffer.allocUnsafe(saltsAtOnce * saltBytes)).toString('base64url')
    nextSalt = 0
  }
  const salt = salts.slice(nextSalt, nextSalt + saltCharacters)
  nextSalt += saltCharacters
  return salt
}

/** Lets core compute its digests by the function of Node. Call it before a ledger is used. */
export function digestNatively(): void {
  digestTextsWith((text) => hashText(text, 'hex'))
}

/** Why content was removed: on request, under a rule of retention, or because a whole run was dropped. */
export type RemovalKind = 'redacted' | 'expired' | 'dropped'

/** Why content is removed, and who does it. */
export interface RemovalCause {
  readonly kind: RemovalKind
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  readonly by: string
  readonly reason?: string
}

/**
 * The record that the content of an event was removed, or that a run was dropped. The event and the chain of hashes stay;
 * of a dropped run only this record stays.
 */
export interface Removal extends RemovalCause {
  readonly runId: RunId
  /** The event; the last one of a run that was dropped. */
  readonly seq: number
  /** The digest of what is left of the event; the hash that a dropped run ended with. */
  readonly digest: Digest
}

/** A removal of an event's content, which leaves `body`; or of a whole run, which ended with `headHash`. */
export type RemovalRequest = Omit<Removal, 'digest'> &
  ({ readonly body: string } | { readonly headHash: Digest })

/** The note that an import brings a run, or the rest of it: written before its events, in the same chain as removals. */
export interface ImportNote extends Omit<RemovalCause, 'kind'> {
  readonly runId: RunId
}

/** A row of the table of removals and imports, which are chained to each other in the order of `pos`: 1, 2, 3 … within the store. */
export interface RemovalRow {
  readonly pos: number
  readonly run_id: string
  readonly seq: number
  readonly kind: string
  readonly at: number
  readonly by: string
  readonly reason: string | null
  readonly digest: Digest
  readonly hash: Digest
}

/** Where the chain of removals stands. */
export type RemovalLink = Pick<RemovalRow, 'pos' | 'hash'>

export const firstRemoval: RemovalLink = { pos: 0, hash: genesisHash }

/** The rows of removals that follow the last one. */
export function linkRemovals(
  last: RemovalLink,
  requests: readonly (RemovalRequest | ImportNote)[],
): readonly RemovalRow[] {
  let { pos, hash } = last
  return requests.map((request) => {
    const { runId: run_id, at, by, reason = null } = request
    // An import is of no event, and nothing is left of it.
    const { seq, kind } = 'kind' in request ? request : { seq: 0, kind: 'imported' }
    const digest =
      'body' in request ? digestText(request.body) : 'headHash' in request ? request.headHash : genesisHash
    const row = { pos: ++pos, run_id, seq, kind, at, by, reason, digest }
    hash = hashRemoval(hash, row)
    return { ...row, hash }
  })
}

function hashRemoval(previous: Digest, row: Omit<RemovalRow, 'hash'>): Digest {
  const { pos, run_id, seq, kind, at, by, reason, digest } = row
  return digestText(`removal ${previous}${JSON.stringify([pos, run_id, seq, kind, at, by, reason, digest])}`)
}

/** Checks that a removal is as it was written, after the one before it. */
export function isRemovalIntact(previous: RemovalLink, row: RemovalRow): boolean {
  return row.pos === previous.pos + 1 && hashRemoval(previous.hash, row) === row.hash
}
