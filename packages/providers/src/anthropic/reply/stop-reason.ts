import { getOwn } from '@tallystick/core/kit'
import type { StopReason } from '@tallystick/core/vocabulary'

const stopReasons: { readonly [raw: string]: StopReason } = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  model_context_window_exceeded: 'context_exceeded',
  refusal: 'refused',
  pause_turn: 'paused',
  compaction: 'compacted',
}

/** The vendor's stop reason in our words; one that it added later is `other`. */
export function stopReasonOf(raw: string): StopReason {
  return getOwn(stopReasons, raw) ?? 'other'
}

/** Whether the reply was cut where it stood, so that its last block may be half a block. */
export function cutsReply(stopReason: StopReason): boolean {
  return stopReason === 'max_tokens' || stopReason === 'context_exceeded' || stopReason === 'refused'
}
