import type { RunId } from '@tallystick/core'
import { digestOf, genesisHash, type Digest } from './chain.ts'

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

/** What is to be removed: with `body`, what stays of an event; without, a whole run, which ended with this hash. */
export type RemovalRequest = Omit<Removal, 'digest'> &
  ({ readonly body: string } | { readonly headHash: Digest })

/** A row of the table of removals, which are chained to each other in the order of `pos`: 1, 2, 3 … within the store. */
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

/** The columns of a removal in the order in which they are inserted. */
export const removalColumns: readonly (keyof RemovalRow)[] = [
  ...(['pos', 'run_id', 'seq', 'kind', 'at', 'by', 'reason', 'digest', 'hash'] as const),
]

/** Where the chain of removals stands. */
export type RemovalLink = Pick<RemovalRow, 'pos' | 'hash'>

/** The link before the first removal. */
export const firstRemoval: RemovalLink = { pos: 0, hash: genesisHash }

/** The rows of removals that follow the last one. */
export function linkRemovals(last: RemovalLink, requests: readonly RemovalRequest[]): readonly RemovalRow[] {
  let { pos, hash } = last
  return requests.map((request) => {
    const { runId: run_id, seq, kind, at, by, reason = null } = request
    const digest = 'body' in request ? digestOf(request.body) : request.headHash
    const row = { pos: ++pos, run_id, seq, kind, at, by, reason, digest }
    hash = hashRemoval(hash, row)
    return { ...row, hash }
  })
}

function hashRemoval(previous: Digest, row: Omit<RemovalRow, 'hash'>): Digest {
  const { pos, run_id, seq, kind, at, by, reason, digest } = row
  return digestOf(`removal ${previous}${JSON.stringify([pos, run_id, seq, kind, at, by, reason, digest])}`)
}

/** Whether a removal is as it was written, after the one before it. */
export function isRemovalIntact(previous: RemovalLink, row: RemovalRow): boolean {
  return row.pos === previous.pos + 1 && hashRemoval(previous.hash, row) === row.hash
}
