import { hash } from 'node:crypto'
import { type RunId } from '@tallystick/core'
import { canonicalJson } from '@tallystick/core/vocabulary'
import { hexOf } from './chain.ts'

/** Why content was removed: on request, under a rule of retention, or because a whole run was dropped. */
export type RemovalKind = 'redacted' | 'expired' | 'dropped'

/**
 * The record that payloads of a run were removed, and what is left of each. Events and the chain of hashes stay as they
 * were; the chain verifies without payloads. Of a dropped run only this record stays.
 */
export interface Removal {
  readonly runId: RunId
  /** The events, both ends included. Of a run that was dropped, all of them. */
  readonly fromSeq: number
  readonly toSeq: number
  readonly kind: RemovalKind
  /** Milliseconds since 1970 UTC. */
  readonly at: number
  readonly by: string
  readonly reason?: string
  /** What is left of the content of each event, as canonical JSON; empty for a dropped run. */
  readonly kept?: string
  /** The hash that the run ended with, in hex, where it was dropped. */
  readonly headHash?: string
}

/** A removal as a store keeps it, chained to the one before it. */
export interface StoredRemoval extends Removal {
  /** 1, 2, 3 … within the store. */
  readonly pos: number
  readonly hash: Uint8Array
}

/** First byte of the hashed bytes, different from those of links and seals. */
const removalTag = Uint8Array.of(3)

/** SHA-256 over the byte 0x03, the 32 bytes of the removal before, and the canonical JSON of this one with its place. */
function removalHash(previousHash: Uint8Array, removal: Removal & { readonly pos: number }): Uint8Array {
  const { pos, runId, fromSeq, toSeq, kind, at, by, reason, kept, headHash } = removal
  const text = canonicalJson({
    pos,
    runId,
    fromSeq,
    toSeq,
    kind,
    at,
    by,
    ...(reason !== undefined && { reason }),
    ...(kept !== undefined && { kept }),
    ...(headHash !== undefined && { headHash }),
  })
  return hash('sha256', Buffer.concat([removalTag, previousHash, Buffer.from(text)]), 'buffer')
}

/** A row of the table of removals, under the names that its columns have in every store of this package. */
export interface RemovalRow {
  readonly pos: number
  readonly run_id: string
  readonly from_seq: number
  readonly to_seq: number
  readonly kind: string
  readonly at: number
  readonly by: string
  readonly reason: string | null
  readonly kept: string | null
  readonly head_hash: string | null
  readonly hash: Uint8Array
}

/** The removal that a row holds. */
export function storedRemoval(row: RemovalRow): StoredRemoval {
  const { pos, run_id, from_seq: fromSeq, to_seq: toSeq, kind, at, by, reason, kept, head_hash, hash } = row
  return {
    pos,
    runId: run_id as RunId,
    fromSeq,
    toSeq,
    kind: kind as RemovalKind,
    at,
    by,
    hash,
    ...(reason !== null && { reason }),
    ...(kept !== null && { kept }),
    ...(head_hash !== null && { headHash: head_hash }),
  }
}

/** The rows of removals that are to come after the last one. */
export function removalRows(
  last: { readonly pos: number; readonly hash: Uint8Array },
  removals: readonly Removal[],
): readonly RemovalRow[] {
  let { pos, hash: previous } = last
  return removals.map((removal) => {
    pos++
    previous = removalHash(previous, { ...removal, pos })
    const { runId, fromSeq, toSeq, kind, at, by, reason = null, kept = null, headHash = null } = removal
    return {
      pos,
      run_id: runId,
      from_seq: fromSeq,
      to_seq: toSeq,
      kind,
      at,
      by,
      reason,
      kept,
      head_hash: headHash,
      hash: previous,
    }
  })
}

/** Whether a removal is as it was written, after the one before it. */
export function isAsWritten(
  previous: { readonly pos: number; readonly hash: Uint8Array },
  removal: StoredRemoval,
): boolean {
  return (
    removal.pos === previous.pos + 1 && hexOf(removalHash(previous.hash, removal)) === hexOf(removal.hash)
  )
}
