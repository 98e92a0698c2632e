import type { RuntimeEvent } from '@tallystick/core'
import type { EventEnvelope } from '@tallystick/core/vocabulary'

/** What every event has beside its body: what the chain of hashes covers in the clear. */
export type Envelope = Omit<EventEnvelope, 'removed' | 'cause' | 'inboxKey' | 'draining'> & {
  readonly type: RuntimeEvent['type']
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
