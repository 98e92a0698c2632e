import { type RuntimeEvent } from '@tallystick/core'
import { storableText } from '@tallystick/core/store-kit'
import type { DecodingContext } from '../content/payload/decoding-context.ts'
import type { Referred } from '../content/payload/externalized-payload.ts'
import { envelopeOf, type Envelope, type RowEnvelope, type SegmentEnvelope } from './envelope.ts'
import { segmentedType } from './segments/segmented-body.ts'
import type { StoredRemoval } from './removal.ts'

/** What every row of a store has beside its envelope, and every segment of one. */
interface Stored {
  /** Place in the store, from 1, in the order of commits; of several events, the place of the last. */
  readonly pos: number
  /** The fact that may be recorded once, if the event states one. */
  readonly onceKey?: string
  /** HMAC-SHA256 of `body` under `salt`; empty for a segmented row, whose segments have a commitment each. */
  readonly bodyCommit: Uint8Array
  /** The link of the chain. */
  readonly hash: Uint8Array
  /** Absent where the payload is gone from the store. */
  readonly payload?: { readonly salt: Uint8Array; readonly body: Uint8Array }
  /** Present where the payload was taken away on record. */
  readonly removal?: StoredRemoval
  /** Of a row of which segments were taken away, the removals that cover any of its events. */
  readonly removals?: readonly StoredRemoval[]
  /** What the body needs to be read, where it is not plain. */
  readonly decoding?: DecodingContext
  /** What the body refers to, where it is not plain and could be opened. */
  readonly referred?: Referred
}

/**
 * A row as a store holds it: the envelope in the clear, the body as salted, committed bytes. It holds one segment, or is segmented
 * and holds more. A segment is one event, or neighbouring deltas of one part.
 */
export interface StoredRow extends RowEnvelope, Stored {}

/** One segment, as the row that it has of its own, or as if it had one. */
export interface StoredSegment extends SegmentEnvelope, Stored {}

/** Whether a row is segmented. */
export function isSegmented(row: StoredRow): boolean {
  return row.type === segmentedType && row.firstSeq !== undefined
}

/** Whether a row holds one segment only. */
export function isSegment(row: StoredRow): row is StoredSegment {
  return !isSegmented(row)
}

/** Canonical JSON bytes of all that is not envelope. A `ConfigurationError` where JSON cannot carry it. */
export function bodyBytes(event: RuntimeEvent): Uint8Array {
  const { runId, seq, epoch: _epoch, turn: _turn, toolCallId: _call, type, v: _v, at: _at, ...body } = event
  return Buffer.from(storableText(body, `Event ${seq} (${type}) of run ${runId}`))
}

/** The event that was stored. Throws what `JSON.parse` throws where the bytes are no JSON. */
export function eventOf(envelope: Envelope, body: Uint8Array): RuntimeEvent {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  return Object.assign(JSON.parse(text) as object, envelopeOf(envelope)) as RuntimeEvent
}
