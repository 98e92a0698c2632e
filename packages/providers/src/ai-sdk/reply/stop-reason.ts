import { getOwn } from '@tallystick/core/kit'
import type { StopReason } from '@tallystick/core/vocabulary'
import { erroneousReply, failures } from '../client/failure.ts'

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
  const known = raw === undefined ? undefined : getOwn(byRaw, raw)
  const reason = known ?? getOwn(byUnified, unified) ?? 'other'
  return reason === 'end' && hadCalls ? 'tool_use' : reason
}

/** Whether the reply was cut where it stood, so that its last call may be half a call. */
export function cutsReply(reason: StopReason): boolean {
  return ['max_tokens', 'context_exceeded', 'refused', 'content_filtered'].includes(reason)
}

/** What is known of how a stream ended, beside the reason that it gives. */
export interface Proof {
  /** Whether a reply of which nothing says that it ended, counts as whole. */
  readonly endOfStreamIsEnd: boolean
  /** The provider says itself that the stream ended before the reply did. */
  readonly endMissing: boolean
  /** Whether the last call has no input, or none that can be read: it may have been cut. */
  readonly unproven: boolean
}

/** Why the reply ended, where something proves that it did. Throws a `ProviderError` where nothing does. */
export function provenReason(
  unified: string,
  raw: string | undefined,
  { endOfStreamIsEnd, endMissing, unproven }: Proof,
): string {
  if (unified === 'error' && !endMissing) throw erroneousReply(raw)
  // Version 3 has no word for a stream that was cut: it knows of no reason then, and neither of a word for one.
  const proven = unified !== 'interrupted' && (unified !== 'other' || raw !== undefined)
  if (proven && !endMissing) return unified
  // Nothing but the input itself could say that it came to its end.
  if (!endOfStreamIsEnd || unproven) throw failures.truncatedReply()
  return 'stop'
}
