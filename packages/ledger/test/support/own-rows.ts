import type { RuntimeEvent } from '@tallystick/core'
import type { UnlinkedRow } from '../../src/record/linked-row.ts'
import { bodyBytes } from '../../src/record/stored-row.ts'

/** A row for each event, as every release before shared rows wrote them. */
export function ownRows(
  events: readonly RuntimeEvent[],
  bytesOf: (event: RuntimeEvent) => Uint8Array = bodyBytes,
): readonly UnlinkedRow[] {
  return events.map((event) => ({ events: [event], bytes: bytesOf(event) }))
}
