import type { RuntimeEvent } from '@tallystick/core'
import type { EventEnvelope } from '@tallystick/core/vocabulary'
import { segmentedType } from './segments/segmented-body.ts'

/** What every event has beside its body: what the chain of hashes covers in the clear. */
export type Envelope = Omit<EventEnvelope, 'removed' | 'cause' | 'inboxKey' | 'draining'> & {
  readonly type: RuntimeEvent['type']
}

/** How many events a row holds at most. */
export const maxEventsOfRow = 256

/** The envelope of a segment: of one event, or of neighbouring deltas, with `seq` and `at` of the last. */
export interface SegmentEnvelope extends Envelope {
  /** The `seq` of its first event; absent where there is one. */
  readonly firstSeq?: number
}

/**
 * The envelope of a row: that of its only segment, or of a segmented row. The latter has `seq` and `at` of its last event, a type of
 * its own, and no call.
 */
export interface RowEnvelope extends Omit<SegmentEnvelope, 'type'> {
  readonly type: RuntimeEvent['type'] | typeof segmentedType
}

/** What the envelope of a row has, or may have. */
export const envelopeNames = [
  'runId',
  'firstSeq',
  'seq',
  'epoch',
  'turn',
  'toolCallId',
  'type',
  'v',
  'at',
] as const

/** The envelope of an event, its keys in a fixed order. */
export function envelopeOf(event: Envelope): Envelope {
  const { runId, seq, epoch, turn, toolCallId, type, v, at } = event
  return toolCallId === undefined
    ? { runId, seq, epoch, turn, type, v, at }
    : { runId, seq, epoch, turn, toolCallId, type, v, at }
}

/** The envelope of a segment that holds these events. */
export function segmentEnvelopeOf(events: readonly Envelope[]): SegmentEnvelope {
  const [first, last] = [events[0] as Envelope, events.at(-1) as Envelope]
  return first === last ? envelopeOf(last) : { ...envelopeOf(last), firstSeq: first.seq }
}

/** The version of segmented rows. */
const segmentedVersion = 1

/** The envelope of the segmented row that holds these events. */
export function segmentedEnvelopeOf(events: readonly Envelope[]): RowEnvelope {
  const { runId, seq: firstSeq } = events[0] as Envelope
  const { seq, epoch, turn, at } = events.at(-1) as Envelope
  return { runId, firstSeq, seq, epoch, turn, type: segmentedType, v: segmentedVersion, at }
}

/**
 * The canonical text of an envelope, of whole numbers and texts only. Spelled out in the order of its keys, since it is
 * written for each row that is appended or read.
 */
export function envelopeText(envelope: RowEnvelope): string {
  const { at, epoch, firstSeq, runId, seq, toolCallId, turn, type, v } = envelope
  const first = firstSeq === undefined ? '' : `"firstSeq":${firstSeq},`
  const call = toolCallId === undefined ? '' : `"toolCallId":${JSON.stringify(toolCallId)},`
  return (
    `{"at":${at},"epoch":${epoch},${first}"runId":${JSON.stringify(runId)},"seq":${seq},` +
    `${call}"turn":${turn},"type":${JSON.stringify(type)},"v":${v}}`
  )
}
