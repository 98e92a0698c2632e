import type { RuntimeEvent } from '@tallystick/core'

/** What every event has beside its body. */
export function envelopeOf({ runId, seq, epoch, turn, toolCallId, type, v, at }: RuntimeEvent): object {
  return { runId, seq, epoch, turn, ...(toolCallId !== undefined && { toolCallId }), type, v, at }
}
