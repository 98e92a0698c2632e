import { type RuntimeEvent } from '@tallystick/core'
import { onceKeyOf } from '@tallystick/core/store-kit'
import { commitmentOf, linkHash } from './chain.ts'
import { type StoredRow } from './stored-row.ts'
import { newSalt } from './salts.ts'
import { envelopeNames, rowEnvelopeOf, type RowEnvelope } from './envelope.ts'

/** A row with all that a store keeps of it but its place. */
export interface LinkedRow {
  /** What it holds, in order of seq. */
  readonly events: readonly RuntimeEvent[]
  readonly envelope: RowEnvelope
  readonly onceKey: string | undefined
  readonly salt: Uint8Array
  readonly body: Uint8Array
  readonly bodyCommit: Uint8Array
  readonly hash: Uint8Array
}

/** Chains rows to the link before them. `rows` has the events of each, and `bodies` are theirs, in their order. */
export function linkRows(
  previousHash: Uint8Array,
  rows: readonly (readonly RuntimeEvent[])[],
  bodies: readonly Uint8Array[],
): readonly LinkedRow[] {
  let hash = previousHash
  return rows.map((events, index) => {
    const body = bodies[index] as Uint8Array
    const salt = newSalt()
    const bodyCommit = commitmentOf(salt, body)
    const envelope = rowEnvelopeOf(events)
    hash = linkHash(hash, envelope, bodyCommit)
    return { events, envelope, onceKey: onceKeyOf(events[0] as RuntimeEvent), salt, body, bodyCommit, hash }
  })
}

/** Whether what is stored are these very events: then only the acknowledgement of their append was lost. */
export function isStoredAs(stored: StoredRow, events: readonly RuntimeEvent[], body: Uint8Array): boolean {
  const envelope = rowEnvelopeOf(events)
  return (
    stored.payload !== undefined &&
    Buffer.compare(stored.payload.body, body) === 0 &&
    envelopeNames.every((name) => stored[name] === envelope[name])
  )
}
