import { randomBytes } from 'node:crypto'
import { type RuntimeEvent } from '@tallystick/core'
import { onceKeyOf } from '@tallystick/core/store-kit'
import { commitmentOf, linkHash } from './chain.ts'
import { type StoredEvent } from './stored-event.ts'
import { envelopeNames } from './envelope.ts'

/** Enough bytes that a guess at a body cannot be confirmed without the salt. */
const saltBytes = 16

/** An event with all that a store keeps of it but its place. */
export interface LinkedEvent {
  readonly event: RuntimeEvent
  readonly onceKey: string | undefined
  readonly salt: Uint8Array
  readonly body: Uint8Array
  readonly bodyCommit: Uint8Array
  readonly hash: Uint8Array
}

/** Chains events to the link before them. `bodies` are theirs, in their order. */
export function linkEvents(
  previousHash: Uint8Array,
  events: readonly RuntimeEvent[],
  bodies: readonly Uint8Array[],
): readonly LinkedEvent[] {
  const salts = randomBytes(saltBytes * events.length)
  let hash = previousHash
  return events.map((event, index) => {
    const body = bodies[index] as Uint8Array
    const salt = salts.subarray(index * saltBytes, (index + 1) * saltBytes)
    const bodyCommit = commitmentOf(salt, body)
    hash = linkHash(hash, event, bodyCommit)
    return { event, onceKey: onceKeyOf(event), salt, body, bodyCommit, hash }
  })
}

/** Whether what is stored is this very event: then only the acknowledgement of its append was lost. */
export function isStoredAs(stored: StoredEvent, event: RuntimeEvent, body: Uint8Array): boolean {
  return (
    stored.payload !== undefined &&
    Buffer.compare(stored.payload.body, body) === 0 &&
    envelopeNames.every((name) => stored[name] === event[name])
  )
}
