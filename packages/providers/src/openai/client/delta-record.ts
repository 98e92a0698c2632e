import { endOfObjectWithout } from '../../shared/json/json-end.ts'
import type { DeltaShape } from '../../shared/stream/packed-deltas.ts'

/** Only the events of Responses have names. */
const beforeData = /(?:event: response\.[a-z_.]{1,60}\.delta\n)?data: (?=\{)/y

/** The record of a delta of either wire. */
export const deltaShape: DeltaShape = { endOfDelta }

function endOfDelta(text: string, from: number): number {
  beforeData.lastIndex = from
  if (!beforeData.test(text)) return -1
  // The client looks for an error in each record, and would find none in a list.
  const end = endOfObjectWithout('error', text, beforeData.lastIndex)
  return end !== -1 && text.startsWith('\n\n', end) ? end + 2 : -1
}
