import { type RuntimeEvent } from '@tallystick/core'
import { onceKeyOf } from '@tallystick/core/store-kit'
import { commitmentOf, linkHash } from './chain.ts'
import { type StoredRow } from './stored-row.ts'
import { newSalt } from './salts.ts'
import { envelopeNames, segmentEnvelopeOf, segmentedEnvelopeOf, type RowEnvelope } from './envelope.ts'
import { segmentedCommitment } from './segments/segment-commitments.ts'

/** A row with all that a store keeps of it but its place. */
export interface LinkedRow {
  /** What it holds, in order of seq. */
  readonly events: readonly RuntimeEvent[]
  readonly envelope: RowEnvelope
  readonly onceKey: string | undefined
  /** The numbers of the facts that its segments state. */
  readonly facts: readonly number[]
  readonly salt: Uint8Array
  readonly body: Uint8Array
  readonly bodyCommit: Uint8Array
  readonly hash: Uint8Array
}

/** The events of a row, and what they say, as bytes. */
export interface UnlinkedRow {
  readonly events: readonly RuntimeEvent[]
  readonly bytes: Uint8Array
  /** Present for a segmented row. */
  readonly isSegmented?: true
  /** The numbers of the facts that its segments state. A row of one event names its fact, and a trigger of the store states that. */
  readonly facts?: readonly number[]
}

const noCommitment: Uint8Array = new Uint8Array()

/** Chains rows to the link before them. */
export function linkRows(previousHash: Uint8Array, rows: readonly UnlinkedRow[]): readonly LinkedRow[] {
  let hash = previousHash
  return rows.map((row) => {
    const { events, bytes: body, isSegmented = false, facts = noFacts } = row
    const salt = newSalt()
    const envelope = envelopeOfRow(row)
    const commitment = isSegmented ? ownCommitment(salt, body) : commitmentOf(salt, body)
    hash = linkHash(hash, envelope, commitment)
    const onceKey = isSegmented ? undefined : onceKeyOf(events[0] as RuntimeEvent)
    const bodyCommit = isSegmented ? noCommitment : commitment
    return { events, envelope, onceKey, facts, salt, body, bodyCommit, hash }
  })
}

/** A body that was laid together just now has the form of one. */
function ownCommitment(salt: Uint8Array, body: Uint8Array): Uint8Array {
  return segmentedCommitment({ salt, body }) as Uint8Array
}

const noFacts: readonly number[] = []

function envelopeOfRow({ events, isSegmented }: UnlinkedRow): RowEnvelope {
  return isSegmented ? segmentedEnvelopeOf(events) : segmentEnvelopeOf(events)
}

/** Whether what is stored are these very events: then only the acknowledgement of their append was lost. */
export function isStoredAs(stored: StoredRow, row: UnlinkedRow): boolean {
  const envelope = envelopeOfRow(row)
  return (
    stored.payload !== undefined &&
    Buffer.compare(stored.payload.body, row.bytes) === 0 &&
    envelopeNames.every((name) => stored[name] === envelope[name])
  )
}
