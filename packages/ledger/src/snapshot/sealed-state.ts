import { hash } from 'node:crypto'
import {
  canonicalJson,
  stateFromJson,
  stateToJson,
  type JsonObject,
  type RunId,
  type RunState,
} from '@tallystick/core'
import { hexOf } from '../chain.ts'
import { reducerDigest } from '../code-digests.ts'

/** A snapshot as a store keeps it: the state of a run behind one of its events. */
export interface StoredSnapshot {
  readonly seq: number
  /** Canonical JSON. */
  readonly state: Uint8Array
  /** The link of the chain at that event: of another history it is another one. */
  readonly headHash: Uint8Array
  /** Over all of this, the run and the code that folded it. */
  readonly seal: Uint8Array
}

/** The bytes of a state. The same state gives the same bytes. */
export function stateBytes(state: RunState): Uint8Array {
  return Buffer.from(canonicalJson(stateToJson(state)))
}

/** SHA-256 over what a snapshot is of, and over its bytes. */
export function snapshotSeal(
  runId: RunId,
  { seq, state, headHash }: Omit<StoredSnapshot, 'seal'>,
): Uint8Array {
  const of = canonicalJson({ runId, seq, headHash: hexOf(headHash), reducer: reducerDigest })
  return hash('sha256', Buffer.concat([Buffer.from(`snapshot ${of}\n`), state]), 'buffer')
}

/** The state that a snapshot holds; `undefined` where it is not as it was written. */
export function stateOfSnapshot(runId: RunId, snapshot: StoredSnapshot): RunState | undefined {
  if (Buffer.compare(snapshotSeal(runId, snapshot), snapshot.seal) !== 0) return undefined
  const { state } = snapshot
  const text = Buffer.from(state.buffer, state.byteOffset, state.byteLength).toString()
  return stateFromJson(JSON.parse(text) as JsonObject)
}
