import { type RuntimeEvent } from '@tallystick/core'
import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
import { decodedEvents } from '../content/event/decoded-events.ts'
import type { StoredSegment } from '../record/stored-row.ts'
import { redactedPayload } from '../content/payload/redacted-payload.ts'
import type { Removal } from '../record/removal.ts'

/** Why payloads are taken away, and who does it. */
export type Taking = Pick<Removal, 'kind' | 'at' | 'by' | 'reason'>

/**
 * The removals that take away the payloads of some events of one run, in order of seq. Neighbours of which the same is
 * left share one. Throws `LedgerDamagedError` where an event cannot be read.
 */
export function removalsOf(events: readonly StoredSegment[], taking: Taking): readonly Removal[] {
  const removals: Removal[] = []
  for (const stored of events) {
    const [first] = decodedEvents(stored)
    if (first === undefined) continue
    // Of each of several deltas the same is left.
    const kept = keptOf(first)
    const last = removals.at(-1)
    const { firstSeq = stored.seq } = stored
    if (last?.toSeq === firstSeq - 1 && last.kept === kept) {
      removals[removals.length - 1] = { ...last, toSeq: stored.seq }
    } else {
      removals.push({ runId: stored.runId, fromSeq: firstSeq, toSeq: stored.seq, ...taking, kept })
    }
  }
  return removals
}

function keptOf(event: RuntimeEvent): string {
  return canonicalJson(redactedPayload(event) as unknown as Json)
}
