import { type RuntimeEvent } from '@tallystick/core'
import { canonicalJson } from '@tallystick/core/vocabulary'
import { decodedEvents } from '../content/event/decoded-events.ts'
import type { StoredSegment } from '../record/stored-row.ts'
import { redactedPayload } from '../content/payload/redacted-payload.ts'
import type { Removal } from '../record/removal.ts'
import type { RemovableStore } from './removable-store.ts'

/** Why payloads are taken away, and who does it. */
export type Taking = Pick<Removal, 'kind' | 'at' | 'by' | 'reason'>

/**
 * The removals that take away the payloads of some events, those of a run in order of seq. Neighbours of which the same is
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
    if (last?.runId === stored.runId && last.toSeq === firstSeq - 1 && last.kept === kept) {
      removals[removals.length - 1] = { ...last, toSeq: stored.seq }
    } else {
      removals.push({ runId: stored.runId, fromSeq: firstSeq, toSeq: stored.seq, ...taking, kept })
    }
  }
  return removals
}

function keptOf(event: RuntimeEvent): string {
  return canonicalJson(redactedPayload(event))
}

/**
 * Takes away the payloads of some events, those of a run in order of seq. Answers how many events lost theirs here. Where others
 * took some of them away meanwhile, a removal of several names what is gone and is left out: each of them is named alone then.
 */
export async function takeAway(
  store: RemovableStore,
  segments: readonly StoredSegment[],
  taking: Taking,
): Promise<number> {
  const removals = removalsOf(segments, taking)
  const removed = await store.remove(removals)
  if (removed === eventsIn(removals)) return removed
  return removed + (await store.remove(segments.flatMap((segment) => removalsOf([segment], taking))))
}

/** How many events removals name. */
export function eventsIn(removals: readonly Removal[]): number {
  return removals.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0)
}
