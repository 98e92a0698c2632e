import { storableText, type EventEnvelope, type RuntimeEvent } from '@tallystick/core'
import type { Opening } from './content/opened-event.ts'
import type { StoredRemoval } from './removal/removal.ts'

/** What stands on every event beside its body: what the chain of hashes covers in the clear. */
export type Envelope = Omit<EventEnvelope, 'removed' | 'cause' | 'draining'> & {
  readonly type: RuntimeEvent['type']
}

/** An event as a store holds it: the envelope in the clear, the body as salted, committed bytes. */
export interface StoredEvent extends Envelope {
  /** Place among all events of the store, from 1, in the order of commits. */
  readonly pos: number
  /** The fact that may stand once, where the event states one. */
  readonly onceKey?: string
  /** HMAC-SHA256 of `body` under `salt`. */
  readonly bodyCommit: Uint8Array
  /** The link of the chain. */
  readonly hash: Uint8Array
  /** Absent where the payload is gone from the store. */
  readonly payload?: { readonly salt: Uint8Array; readonly body: Uint8Array }
  /** Present where the payload was taken away on record. */
  readonly removal?: StoredRemoval
  /** What the body needs to be read, where it is not plain. */
  readonly opening?: Opening
}

/** What an envelope has, or may have. */
export const envelopeNames = ['runId', 'seq', 'epoch', 'turn', 'toolCallId', 'type', 'v', 'at'] as const

/** The envelope of an event, its keys in a fixed order. */
export function envelopeOf(event: Envelope): Envelope {
  const { runId, seq, epoch, turn, toolCallId, type, v, at } = event
  return { runId, seq, epoch, turn, ...(toolCallId !== undefined && { toolCallId }), type, v, at }
}

/**
 * The canonical text of an envelope, of whole numbers and texts only. Spelled out in the order of its keys, since it is
 * written for each event that is appended or read.
 */
export function envelopeText({ at, epoch, runId, seq, toolCallId, turn, type, v }: Envelope): string {
  const call = toolCallId === undefined ? '' : `"toolCallId":${JSON.stringify(toolCallId)},`
  return (
    `{"at":${at},"epoch":${epoch},"runId":${JSON.stringify(runId)},"seq":${seq},` +
    `${call}"turn":${turn},"type":${JSON.stringify(type)},"v":${v}}`
  )
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
