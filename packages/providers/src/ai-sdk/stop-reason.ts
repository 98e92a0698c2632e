import type { StopReason } from '@tallystick/core'

/** Providers' own words for which the AI SDK has only a coarser one. */
const byRaw: { readonly [raw: string]: StopReason } = {
  refusal: 'refused',
  pause_turn: 'paused',
  compaction: 'compacted',
  model_context_window_exceeded: 'context_exceeded',
}

const byUnified: { readonly [unified: string]: StopReason } = {
  stop: 'end',
  length: 'max_tokens',
  'content-filter': 'content_filtered',
  'tool-calls': 'tool_use',
}

/** Why the reply ended. A reply that asks for tools of ours and says that it is done, waits for them. */
export function stopReasonOf(unified: string, raw: string | undefined, hadCalls: boolean): StopReason {
  const known = raw !== undefined && Object.hasOwn(byRaw, raw) ? byRaw[raw] : undefined
  const reason = known ?? (Object.hasOwn(byUnified, unified) ? byUnified[unified]! : 'other')
  return reason === 'end' && hadCalls ? 'tool_use' : reason
}

/** Whether the reply was cut where it stood, so that its last call may be half a call. */
export function cutsReply(reason: StopReason): boolean {
  return ['max_tokens', 'context_exceeded', 'refused', 'content_filtered'].includes(reason)
}
